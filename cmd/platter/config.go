package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"platter/cmd/client"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change the settings of topics and brokers, while they run",
		Long: `Shows and changes the settings of topics and of running brokers. What is changed is kept by the
coordinator, comes into effect at once, and survives a restart.

'platter settings' explains the settings themselves.`,
		Example: `  platter config describe topic access
  platter config alter topic access --set retention.ms=86400000
  platter config alter brokers --set log.retention.ms=86400000`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configDescribeCommand(), configAlterCommand())
	return cmd
}

const resourceWords = "topic NAME... | broker ID... | brokers"

// parseResource reads whose settings are meant.
func parseResource(args []string) (client.Resource, error) {
	var of client.Resource
	switch kind, names := args[0], args[1:]; {
	case kind == "topic" && len(names) > 0:
		of.Topics = names
	case kind == "broker" && len(names) > 0:
		for _, name := range names {
			id, err := client.ParseBroker(name)
			if err != nil {
				return of, usageError{err}
			}
			of.Brokers = append(of.Brokers, id)
		}
	case kind == "topic", kind == "broker":
		return of, usagef("%s: which one?", kind)
	case kind != "brokers":
		return of, usagef("%q is not one of %s", kind, resourceWords)
	case len(names) > 0:
		return of, usagef("brokers are all brokers: %q is too much (a single one: broker %s)", names[0], names[0])
	}
	return of, nil
}

func configDescribeCommand() *cobra.Command {
	var f clientFlags
	var all, asJSON bool
	var names []string
	cmd := &cobra.Command{
		Use:   "describe " + resourceWords,
		Short: "Show the settings of topics or brokers, and where each comes from",
		Long: `Shows the settings that are not at their built-in defaults, or all, or some by name.

'brokers' are the settings that were changed at run time for all brokers together.`,
		Example: `  platter config describe topic access
  platter config describe topic access --name retention.ms
  platter config describe broker 1001 --all --json
  platter config describe brokers`,
		Args: someArguments("to know whose settings: " + resourceWords),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := parseResource(args)
			if err != nil {
				return err
			}
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.DescribeConfigs(ctx, cmd.OutOrStdout(), of, all, asJSON, names...)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&all, "all", false, "also what is at its built-in default")
	cmd.Flags().StringArrayVar(&names, "name", nil, "only this setting; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, with every value that a setting would fall back to")
	return cmd
}

func configAlterCommand() *cobra.Command {
	var f clientFlags
	var set, remove, add, subtract []string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "alter " + resourceWords,
		Short: "Change settings of topics, of a broker, or of all brokers",
		Long: `Changes settings: all that are given for a resource, or none of them. A broker's own setting counts more
than the one for all brokers, and both more than its server.properties.`,
		Example: `  platter config alter topic access --set retention.ms=86400000 --set max.message.bytes=2000000
  platter config alter topic access --delete retention.ms
  platter config alter broker 1001 --set log.segment.bytes=268435456
  platter config alter brokers --set log.retention.ms=86400000 --validate-only`,
		Args: someArguments("to know whose settings: " + resourceWords),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := parseResource(args)
			if err != nil {
				return err
			}
			changes, err := settings(change{"--set", client.Set, set}, change{"--delete", client.Delete, remove},
				change{"--append", client.Append, add}, change{"--subtract", client.Subtract, subtract})
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				return usagef("nothing to alter: give --set, --delete, --append or --subtract")
			}
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.AlterConfigs(ctx, cmd.OutOrStdout(), of, changes, dry, asJSON)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringArrayVar(&set, "set", nil, "set a setting, name=value; may be repeated")
	cmd.Flags().StringArrayVar(&remove, "delete", nil, "take a setting back, by name; may be repeated")
	cmd.Flags().StringArrayVar(&add, "append", nil, "add to a setting that is a list, name=value; may be repeated")
	cmd.Flags().StringArrayVar(&subtract, "subtract", nil, "take from a setting that is a list, name=value; may be repeated")
	cmd.Flags().BoolVar(&dry, "validate-only", false, "only say whether it could be done")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// change is what one flag asks for.
type change struct {
	flag   string
	op     client.SettingOp
	values []string
}

// settings reads the changes that flags ask for; a setting can be changed once.
func settings(changes ...change) ([]client.Setting, error) {
	var out []client.Setting
	seen := map[string]bool{}
	for _, c := range changes {
		for _, v := range c.values {
			s := client.Setting{Name: v, Op: c.op}
			if c.op != client.Delete {
				var err error
				if s.Name, s.Value, err = assignment(c.flag, v); err != nil {
					return nil, err
				}
			}
			switch {
			case s.Name == "":
				return nil, usagef("%s: no name", c.flag)
			case seen[s.Name]:
				return nil, usagef("%s %s: the setting is changed twice", c.flag, v)
			}
			seen[s.Name] = true
			out = append(out, s)
		}
	}
	return out, nil
}

// assignment splits name=value.
func assignment(flag, s string) (name, value string, err error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return "", "", usagef("%s %s: not name=value", flag, s)
	}
	return name, value, nil
}
