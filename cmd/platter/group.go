package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platter/cmd/client"
)

func groupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "List, describe, reset and delete consumer groups",
		Example: `  platter group list
  platter group describe readers
  platter group reset-offsets readers --topic access --to-earliest
  platter group delete readers`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(groupListCommand(), groupDescribeCommand(), groupResetCommand(), groupDeleteCommand())
	return cmd
}

// groupStates are what --state may name, by their lower-case forms.
var groupStates = map[string]string{
	"empty": "Empty", "preparingrebalance": "PreparingRebalance", "completingrebalance": "CompletingRebalance",
	"stable": "Stable", "dead": "Dead",
}

func groupListCommand() *cobra.Command {
	var f clientFlags
	var states []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List groups and their states",
		Example: `  platter group list
  platter group list --state Stable,PreparingRebalance
  platter group list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var wanted []string
			for _, s := range states {
				name, ok := groupStates[strings.ToLower(strings.TrimSpace(s))]
				if !ok {
					return usagef("--state %s: not one of Empty, PreparingRebalance, CompletingRebalance, Stable, Dead", s)
				}
				wanted = append(wanted, name)
			}
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.ListGroups(ctx, cmd.OutOrStdout(), wanted, asJSON)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in these states; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func groupDescribeCommand() *cobra.Command {
	var f clientFlags
	var members, asJSON bool
	cmd := &cobra.Command{
		Use:   "describe [GROUP...]",
		Short: "Show where groups stand in each partition, and their members; all groups when none is named",
		Example: `  platter group describe readers
  platter group describe readers --members
  platter group describe --json | jq '.[] | {group, lag: ([.partitions[].lag] | add)}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.DescribeGroups(ctx, cmd.OutOrStdout(), members, asJSON, args...)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&members, "members", false, "a line a member, with what it was assigned, instead of one a partition")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, members and partitions")
	return cmd
}

func groupDeleteCommand() *cobra.Command {
	var f clientFlags
	var ifExists bool
	cmd := &cobra.Command{
		Use:     "delete GROUP...",
		Short:   "Delete groups without members, and their offsets",
		Example: "  platter group delete readers writers --if-exists",
		Args:    someArguments("a group's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.DeleteGroups(ctx, cmd.OutOrStdout(), ifExists, args...)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&ifExists, "if-exists", false, "a group that does not exist is no error")
	return cmd
}

// resetFlags are the command line of `platter group reset-offsets`; the names are those of Kafka's tool.
type resetFlags struct {
	clientFlags
	r                         client.ResetOptions
	topics                    []string
	earliest, latest, current bool
	offset, shift             int64
	dateTime, duration, file  string
	dryRun                    bool
}

func groupResetCommand() *cobra.Command {
	var f resetFlags
	cmd := &cobra.Command{
		Use:   "reset-offsets GROUP",
		Short: "Put a group's committed offsets elsewhere; a dry run unless --execute is given",
		Long: `Shows where a group's committed offsets would be put, and with --execute puts them there. The group must
have no members. Exactly one of the --to-*, --by-duration, --shift-by and --from-file says where; --topic or
--all-topics says for which partitions (--from-file brings its own).

An offset outside of the log becomes its first or its end. A time for which there is no record is the end.`,
		Example: `  platter group reset-offsets readers --topic access --to-earliest
  platter group reset-offsets readers --topic access:0,1 --shift-by -100 --execute
  platter group reset-offsets readers --all-topics --to-datetime 2026-07-01T00:00:00.000 --execute
  platter group reset-offsets readers --all-topics --by-duration PT1H30M
  platter group reset-offsets readers --all-topics --to-current --export > offsets.csv
  platter group reset-offsets readers --from-file offsets.csv --execute`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("%s needs one group's name", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.r.Group = args[0]
			if err := f.prepare(cmd); err != nil {
				return err
			}
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.ResetOffsets(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), f.r)
			})
		},
	}
	fl := cmd.Flags()
	f.bind(fl)
	fl.StringArrayVar(&f.topics, "topic", nil, "a topic, or some of its partitions as TOPIC:0,1; may be repeated")
	fl.BoolVar(&f.r.AllTopics, "all-topics", false, "every partition that the group has a committed offset for")
	fl.BoolVar(&f.earliest, "to-earliest", false, "to the first offset there is")
	fl.BoolVar(&f.latest, "to-latest", false, "to the end")
	fl.BoolVar(&f.current, "to-current", false, "to where it is; the end where nothing is committed")
	fl.Int64Var(&f.offset, "to-offset", 0, "to this offset")
	fl.StringVar(&f.dateTime, "to-datetime", "", "to the first record at or after a time, as 2026-07-01T12:00:00.000; UTC without a zone")
	fl.StringVar(&f.duration, "by-duration", "", "to the first record of the last so long, as PT1H30M, P7D or 36h")
	fl.Int64Var(&f.shift, "shift-by", 0, "by so many records from the committed offset; negative: back")
	fl.StringVar(&f.file, "from-file", "", "to what the lines topic,partition,offset of a file say; -: standard input")
	fl.BoolVar(&f.r.Execute, "execute", false, "do it")
	fl.BoolVar(&f.dryRun, "dry-run", false, "only show it (the default)")
	fl.BoolVar(&f.r.CSV, "export", false, "as lines that --from-file reads")
	fl.BoolVar(&f.r.JSON, "json", false, "as JSON")
	return cmd
}

const resetGoals = "--to-earliest, --to-latest, --to-current, --to-offset, --to-datetime, --by-duration, --shift-by and --from-file"

// prepare checks the flags and turns them into what the work needs.
func (f *resetFlags) prepare(cmd *cobra.Command) error {
	var goals []string
	for _, name := range []string{"to-earliest", "to-latest", "to-current", "to-offset", "to-datetime", "by-duration", "shift-by", "from-file"} {
		if cmd.Flags().Changed(name) {
			goals = append(goals, name)
		}
	}
	scoped := f.r.AllTopics || len(f.topics) > 0
	switch {
	case len(goals) != 1:
		return usagef("exactly one of %s is needed", resetGoals)
	case f.r.Execute && f.dryRun:
		return usagef("--execute and --dry-run exclude each other")
	case f.r.JSON && f.r.CSV:
		return usagef("--json and --export exclude each other")
	case f.r.AllTopics && len(f.topics) > 0:
		return usagef("--topic and --all-topics exclude each other")
	case goals[0] == "from-file" && scoped:
		return usagef("--from-file says itself which partitions; --topic and --all-topics go with the others")
	case goals[0] != "from-file" && !scoped:
		return usagef("--topic or --all-topics is needed")
	}
	for _, text := range f.topics {
		t, err := client.ParseTopicPartitions(text)
		if err != nil {
			return usagef("--topic: %v", err)
		}
		f.r.Topics = append(f.r.Topics, t)
	}
	return f.goal(cmd, goals[0])
}

func (f *resetFlags) goal(cmd *cobra.Command, name string) error {
	g := &f.r.Goal
	switch name {
	case "to-earliest":
		return f.toggled(name, f.earliest, client.ToEarliest)
	case "to-latest":
		return f.toggled(name, f.latest, client.ToLatest)
	case "to-current":
		return f.toggled(name, f.current, client.ToCurrent)
	case "to-offset":
		if f.offset < 0 {
			return usagef("--to-offset %d: an offset is not negative", f.offset)
		}
		g.Kind, g.N = client.ToOffset, f.offset
	case "shift-by":
		g.Kind, g.N = client.ShiftBy, f.shift
	case "to-datetime":
		at, err := client.ParseDateTime(f.dateTime)
		if err != nil {
			return usagef("--to-datetime: %v", err)
		}
		g.Kind, g.N = client.ToTime, at.UnixMilli()
	case "by-duration":
		age, err := client.ParseAge(f.duration)
		if err != nil {
			return usagef("--by-duration: %v", err)
		}
		*g = client.GoalAgo(time.Now(), age)
	case "from-file":
		return f.readFile(cmd)
	}
	return nil
}

func (f *resetFlags) toggled(name string, on bool, kind client.GoalKind) error {
	if !on {
		return usagef("--%s=false says nothing; exactly one of %s is needed", name, resetGoals)
	}
	f.r.Goal.Kind = kind
	return nil
}

func (f *resetFlags) readFile(cmd *cobra.Command) (err error) {
	in := cmd.InOrStdin()
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return err
		}
		defer file.Close()
		in = io.Reader(file)
	}
	f.r.Goal.Kind = client.ToFile
	if f.r.Goal.File, err = client.ReadOffsetsCSV(in); err != nil {
		return usagef("--from-file %s: %v", f.file, err)
	}
	return nil
}
