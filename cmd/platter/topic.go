package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platter/cmd/client"
)

// clientFlags say whom to talk to; every command that does has them.
type clientFlags struct {
	bootstrap string
	timeout   time.Duration
}

func (f *clientFlags) bind(fl *pflag.FlagSet) {
	fl.StringVarP(&f.bootstrap, "bootstrap", "b", "127.0.0.1:9092", "brokers to begin with, host:port separated by commas")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for the broker")
}

func (f *clientFlags) options() (client.Options, error) {
	brokers, err := client.SplitBootstrap(f.bootstrap)
	if err != nil {
		return client.Options{}, usagef("--bootstrap: %v", err)
	}
	if f.timeout <= 0 {
		return client.Options{}, usagef("--timeout must be above 0")
	}
	return client.Options{Bootstrap: brokers, Timeout: f.timeout, ClientID: "platter"}, nil
}

func topicCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topic",
		Short: "Create, list, describe, alter and delete topics",
		Example: `  platter topic create access -p 4
  platter topic list
  platter topic describe access
  platter topic alter access -p 8 --config retention.ms=86400000
  platter topic delete access`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(topicCreateCommand(), topicListCommand(), topicDescribeCommand(), topicAlterCommand(), topicDeleteCommand())
	return cmd
}

func topicCreateCommand() *cobra.Command {
	var f clientFlags
	var n client.NewTopics
	var configs []string
	cmd := &cobra.Command{
		Use:   "create NAME...",
		Short: "Create topics",
		Example: `  platter topic create access
  platter topic create access -p 12 --config retention.ms=86400000 --config compression.type=zstd
  platter topic create access --if-not-exists`,
		Args: someArguments("a topic's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n.Names = args
			n.Configs = map[string]string{}
			for _, c := range configs {
				name, value, err := assignment("--config", c)
				if err != nil {
					return err
				}
				n.Configs[name] = value
			}
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.CreateTopics(ctx, cmd.OutOrStdout(), n)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().Int32VarP(&n.Partitions, "partitions", "p", -1, "partitions; -1: the broker's default (num.partitions)")
	cmd.Flags().Int16VarP(&n.Replicas, "replicas", "r", -1, "replicas of each; -1: the broker's default (default.replication.factor)")
	cmd.Flags().StringArrayVar(&configs, "config", nil, "a setting of the topic, name=value; may be repeated")
	cmd.Flags().BoolVar(&n.IfNotExists, "if-not-exists", false, "a topic that exists is no error")
	cmd.Flags().BoolVar(&n.ValidateOnly, "validate-only", false, "only say whether it could be done")
	return cmd
}

func topicListCommand() *cobra.Command {
	var f clientFlags
	var internal, asJSON, classic bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List topics",
		Example: `  platter topic list
  platter topic list --classic
  platter topic list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				if classic {
					return o.ListTopicsClassic(ctx, cmd.OutOrStdout(), internal)
				}
				return o.ListTopics(ctx, cmd.OutOrStdout(), internal, asJSON)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&internal, "internal", false, "also the topics that brokers keep for themselves")
	cmd.Flags().BoolVar(&classic, "classic", false, "a line a partition, as Kafka 0.8 printed it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.MarkFlagsMutuallyExclusive("classic", "json")
	return cmd
}

func topicDescribeCommand() *cobra.Command {
	var f clientFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe [NAME...]",
		Short: "Show the partitions, offsets and settings of topics; of all when none is named",
		Example: `  platter topic describe access
  platter topic describe --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.DescribeTopics(ctx, cmd.OutOrStdout(), asJSON, args...)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func topicAlterCommand() *cobra.Command {
	var f clientFlags
	var c client.TopicChange
	var set, remove []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "alter NAME...",
		Short: "Add partitions to topics, change their settings",
		Long: `Adds partitions to topics and changes their settings, all settings of a topic or none of them.

Partitions can only become more. A key's records go to another partition then: what was written before
stays where it is.`,
		Example: `  platter topic alter access -p 8
  platter topic alter access --config retention.ms=86400000 --delete-config segment.bytes
  platter topic alter access -p 8 --validate-only`,
		Args: someArguments("a topic's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Topics = args
			var err error
			if c.Settings, err = settings(change{"--config", client.Set, set}, change{"--delete-config", client.Delete, remove}); err != nil {
				return err
			}
			switch {
			case cmd.Flags().Changed("partitions") && c.Partitions < 1:
				return usagef("--partitions must be at least 1")
			case c.Partitions == 0 && len(c.Settings) == 0:
				return usagef("nothing to alter: give --partitions, --config or --delete-config")
			}
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.AlterTopics(ctx, cmd.OutOrStdout(), c, asJSON)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().Int32VarP(&c.Partitions, "partitions", "p", 0, "partitions that the topics shall have in all")
	cmd.Flags().StringArrayVar(&set, "config", nil, "a setting to set, name=value; may be repeated")
	cmd.Flags().StringArrayVar(&remove, "delete-config", nil, "a setting to put back to the broker's default, by name; may be repeated")
	cmd.Flags().BoolVar(&c.DryRun, "validate-only", false, "only say whether it could be done")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func topicDeleteCommand() *cobra.Command {
	var f clientFlags
	var ifExists bool
	cmd := &cobra.Command{
		Use:     "delete NAME...",
		Short:   "Delete topics and all their records",
		Example: "  platter topic delete access",
		Args:    someArguments("a topic's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.DeleteTopics(ctx, cmd.OutOrStdout(), ifExists, args...)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&ifExists, "if-exists", false, "a topic that does not exist is no error")
	return cmd
}

// do runs a request with its time limit.
func (f *clientFlags) do(cmd *cobra.Command, work func(context.Context, client.Options) error) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	return work(ctx, o)
}
