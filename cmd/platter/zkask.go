package main

import (
	"context"

	"github.com/spf13/cobra"

	"platter/cmd/zkcli"
	"platter/coord/zkclient"
)

func zkWhoAmICommand(f *zkFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "whoami",
		Short:   "Print whom the server takes us for",
		Example: "  platter zk --auth digest:ann:secret whoami",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.WhoAmI(ctx) })
		},
	}
}

func zkEphemeralsCommand(f *zkFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "getEphemerals [PATH]",
		Aliases: []string{"getephemerals"},
		Short:   "List the ephemeral nodes of this session, those of the shell",
		Example: "  printf 'create -e /me\\ngetEphemerals\\n' | platter zk",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return noArguments(cmd, args[1:])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := "/"
			if len(args) > 0 {
				prefix = args[0]
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.Ephemerals(ctx, prefix) })
		},
	}
}

func zkAllChildrenCommand(f *zkFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "getAllChildrenNumber PATH",
		Aliases: []string{"getallchildrennumber"},
		Short:   "Count all nodes below one",
		Example: "  platter zk getAllChildrenNumber /brokers",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.AllChildrenNumber(ctx, args[0]) })
		},
	}
}

func zkConfigCommand(f *zkFlags) *cobra.Command {
	var l zkcli.Look
	var forClients bool
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Print the servers of an ensemble; one that stands alone has none",
		Example: "  platter zk --server zk1:2181 config -c",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.Config(ctx, l, forClients) })
		},
	}
	cmd.Flags().BoolVarP(&forClients, "client", "c", false, "version and client addresses alone")
	bindLook(cmd, &l)
	return cmd
}

func zkAddWatchCommand(f *zkFlags) *cobra.Command {
	var mode string
	cmd := &cobra.Command{
		Use:     "addWatch PATH",
		Aliases: []string{"addwatch"},
		Short:   "Print what happens at a node, in a shell beside the commands that follow",
		Example: "  platter zk addWatch -m PERSISTENT /brokers/ids",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if mode != "PERSISTENT" && mode != "PERSISTENT_RECURSIVE" {
				return usagef("--mode %s: neither PERSISTENT nor PERSISTENT_RECURSIVE", mode)
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error {
				return t.AddWatch(ctx, args[0], mode == "PERSISTENT_RECURSIVE")
			})
		},
	}
	cmd.Flags().StringVarP(&mode, "mode", "m", "PERSISTENT_RECURSIVE", "PERSISTENT: the node and its children; PERSISTENT_RECURSIVE: it and all below")
	return cmd
}

func zkRemoveWatchesCommand(f *zkFlags) *cobra.Command {
	var child, data, all, local bool
	cmd := &cobra.Command{
		Use:     "removewatches PATH",
		Aliases: []string{"removeWatches"},
		Short:   "Take the shell's watches on a node away",
		Example: "  removewatches /brokers -d",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			typ := zkclient.AllWatches
			switch {
			case f.tool == nil:
				return usagef("removewatches is for the shell: another command's watches ended with it")
			case child && data || all && (child || data):
				return usagef("removewatches: one of --child, --data, --all")
			case child:
				typ = zkclient.ChildWatches
			case data:
				typ = zkclient.DataWatches
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.RemoveWatches(ctx, args[0], typ, local) })
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&child, "child", "c", false, "those of the children")
	fl.BoolVarP(&data, "data", "d", false, "those of the data")
	fl.BoolVarP(&all, "all", "a", false, "all of them, which is also the default")
	fl.BoolVarP(&local, "local", "l", false, "here also when the server cannot be reached")
	return cmd
}
