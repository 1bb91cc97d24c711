package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platter/cmd/zkcli"
)

// zkFlags say whom to talk to, and hold the shell's session.
type zkFlags struct {
	server  string
	timeout time.Duration
	session time.Duration
	auth    []string
	asJSON  bool
	tool    *zkcli.Tool // the shell's; nil: each command has its own
}

func (f *zkFlags) options(cmd *cobra.Command) (zkcli.Options, error) {
	if f.timeout <= 0 {
		return zkcli.Options{}, usagef("--timeout must be above 0")
	}
	for _, a := range f.auth {
		if !strings.Contains(a, ":") {
			return zkcli.Options{}, usagef("--auth %s: not scheme:credentials", a)
		}
	}
	return zkcli.Options{
		Connect: f.server, Timeout: f.timeout, Session: f.session, Auth: f.auth, JSON: f.asJSON, Out: cmd.OutOrStdout(),
	}, nil
}

// do runs one command in the shell's session or one of its own.
func (f *zkFlags) do(cmd *cobra.Command, what func(context.Context, *zkcli.Tool) error) error {
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if f.tool != nil {
		f.tool.SetOutput(cmd.OutOrStdout(), f.asJSON)
		return what(ctx, f.tool)
	}
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	t, err := zkcli.Open(ctx, o)
	if err != nil {
		return err
	}
	defer t.Close()
	return what(ctx, t)
}

func zkCommand() *cobra.Command {
	f := &zkFlags{}
	cmd := zkCommands(f)
	fl := cmd.PersistentFlags()
	fl.StringVar(&f.server, "server", "127.0.0.1:2181", "coordinators, host:port separated by commas, and perhaps a /chroot behind them")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for an answer")
	fl.DurationVar(&f.session, "session-timeout", 30*time.Second, "session timeout to ask for: how long an ephemeral node outlives a crash of this command")
	fl.StringArrayVar(&f.auth, "auth", nil, "who to be, scheme:credentials (digest:user:password); may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.shell(cmd) }
	return cmd
}

// zkCommands is the tree of commands; the shell makes it anew for each line.
func zkCommands(f *zkFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "zk",
		Short: "Look at and change a coordinator's tree, as zkCli.sh does",
		Long: `Looks at and changes the tree of a coordinator: Platter's or Apache ZooKeeper's, it is the same protocol.
Without a command it reads commands from standard input, a line each, in one session, as zkCli.sh does. There a watch does
not wait: its events are printed as they come ('printwatches off': they are not), and there are also 'addauth SCHEME CREDENTIALS',
'close', 'connect [SERVERS]', 'version', 'help' and 'quit'.

The coordinator inside a broker listens on a port of its own: the broker's banner and its log show it
('coordinator'), and coordinator.listener=127.0.0.1:2181 gives it a fixed one. 'platter coord' listens on 127.0.0.1:2181.

Exit code 0: done; 1: refused or failed, the reason is on standard error; 2: the command line is wrong.`,
		Example: `  platter zk ls /brokers/ids
  platter zk --server zk1:2181,zk2:2181/kafka get -s /controller
  platter zk set /config/topics/access '{"version":1,"config":{}}'
  platter zk watch -R /brokers
  platter zk dump --json > tree.jsonl
  platter zk 4lw srvr`,
		Args: noCommand,
	}
	cmd.PersistentFlags().BoolVar(&f.asJSON, "json", false, "as JSON, a value a line")
	cmd.AddCommand(
		zkListCommand(f), zkGetCommand(f), zkStatCommand(f), zkWatchCommand(f), zkDumpCommand(f), zkGetACLCommand(f),
		zkCreateCommand(f), zkSetCommand(f), zkDeleteCommand(f), zkDeleteAllCommand(f), zkSetACLCommand(f), zkSyncCommand(f),
		zkWordCommand(f), zkWhoAmICommand(f), zkEphemeralsCommand(f), zkAllChildrenCommand(f), zkConfigCommand(f),
		zkAddWatchCommand(f), zkRemoveWatchesCommand(f), zkListQuotaCommand(f), zkSetQuotaCommand(f), zkDeleteQuotaCommand(f),
	)
	return cmd
}

// pathArgument asks for a path and up to more arguments.
func pathArgument(more int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("%s needs a path", cmd.CommandPath())
		case len(args) > 1+more:
			return usagef("%s: too much: %q", cmd.CommandPath(), args[1+more:])
		}
		return nil
	}
}

func zkListCommand(f *zkFlags) *cobra.Command {
	var l zkcli.Look
	cmd := &cobra.Command{
		Use:     "ls PATH",
		Short:   "List a node's children, one a line",
		Example: "  platter zk ls /brokers/ids",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.Recursive && (l.Stat || l.Watch) {
				return usagef("ls: -R goes with neither --stat nor --watch")
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.List(ctx, args[0], l) })
		},
	}
	cmd.Flags().BoolVarP(&l.Recursive, "recursive", "R", false, "the paths of the node and of all below it")
	bindLook(cmd, &l)
	return cmd
}

// bindLook gives -s to --stat, as zkCli.sh has it: here --server goes without its letter.
func bindLook(cmd *cobra.Command, l *zkcli.Look) {
	bindStat(cmd, &l.Stat)
	cmd.Flags().BoolVarP(&l.Watch, "watch", "w", false, "wait for the next event, and print it")
}

func bindStat(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVarP(to, "stat", "s", false, "the node's numbers too")
}

func zkGetCommand(f *zkFlags) *cobra.Command {
	var l zkcli.Look
	cmd := &cobra.Command{
		Use:     "get PATH",
		Short:   "Print a node's data",
		Example: "  platter zk get /controller",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.Get(ctx, args[0], l) })
		},
	}
	bindLook(cmd, &l)
	return cmd
}

func zkStatCommand(f *zkFlags) *cobra.Command {
	var l zkcli.Look
	cmd := &cobra.Command{
		Use:     "stat PATH",
		Short:   "Print a node's numbers",
		Example: "  platter zk stat /controller_epoch",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.Stat(ctx, args[0], l) })
		},
	}
	cmd.Flags().BoolVarP(&l.Watch, "watch", "w", false, "wait for the next event, and print it; a missing node's creation is one")
	return cmd
}

func zkWatchCommand(f *zkFlags) *cobra.Command {
	var recursive bool
	var count int
	cmd := &cobra.Command{
		Use:   "watch PATH",
		Short: "Print what happens at a node until interrupted (needs a server of 3.6 or newer)",
		Long: `Prints what happens at a node, an event a line, until interrupted. Missed says that events may have been lost:
the connection was lost, or they came faster than they were printed. It needs a server of 3.6 or newer.`,
		Example: "  platter zk watch /brokers/ids",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error {
				return t.Watch(ctx, args[0], recursive, count)
			})
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "R", false, "and below it")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "end after so many events; 0: never")
	return cmd
}

func zkDumpCommand(f *zkFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "dump [PATH]",
		Short:   "Print a node and all below it, with data: the whole tree without a path",
		Example: "  platter zk dump /config",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s: too much: %q", cmd.CommandPath(), args[1:])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := "/"
			if len(args) > 0 {
				root = args[0]
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.Dump(ctx, root) })
		},
	}
}

func zkGetACLCommand(f *zkFlags) *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:     "getAcl PATH",
		Aliases: []string{"getacl"},
		Short:   "Print who may do what with a node",
		Example: "  platter zk getAcl /brokers",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.GetACL(ctx, args[0], stat) })
		},
	}
	bindStat(cmd, &stat)
	return cmd
}
