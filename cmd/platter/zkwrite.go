package main

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"platter/cmd/zkcli"
	"platter/coord/zkclient"
)

// dataMax is a little more than a request may hold.
const dataMax = 2 << 20

// dataArgument is the data that was typed, or with "-" what standard input holds; nil without any.
func dataArgument(cmd *cobra.Command, args []string, at int) ([]byte, error) {
	switch {
	case len(args) <= at:
		return nil, nil
	case args[at] == "-":
		return io.ReadAll(io.LimitReader(cmd.InOrStdin(), dataMax))
	}
	return []byte(args[at]), nil
}

func zkCreateCommand(f *zkFlags) *cobra.Command {
	var ephemeral, sequential bool
	var ttl string
	var n zkcli.New
	cmd := &cobra.Command{
		Use:     "create PATH [DATA [ACL]]",
		Short:   "Make a node, and print its path",
		Example: "  platter zk create /app/lock mine",
		Long: `Makes a node. DATA - is read from standard input; without DATA the node's data is null. ACL is as
world:anyone:cdrwa, or digest:user:hash:rw,ip:10.0.0.1:r.

An ephemeral node lives as long as its session: -e keeps it until the command is interrupted.`,
		Args: pathArgument(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if n.Data, err = dataArgument(cmd, args, 1); err != nil {
				return err
			}
			if len(args) > 2 {
				if n.ACL, err = zkcli.ParseACL(args[2]); err != nil {
					return usageError{err}
				}
			}
			n.Mode = zkclient.Persistent
			if ephemeral {
				n.Mode |= zkclient.Ephemeral
			}
			if sequential {
				n.Mode |= zkclient.PersistentSequential
			}
			if n.TTL, err = parseTTL(ttl); err != nil {
				return err
			}
			switch {
			case n.Container && (ephemeral || sequential || n.TTL > 0), n.TTL > 0 && ephemeral:
				return usagef("a container is nothing else, and a node with a time to live is not ephemeral")
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error {
				err := t.Create(ctx, args[0], n)
				if err == nil && ephemeral && f.tool == nil {
					t.Hold(ctx)
				}
				return err
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&ephemeral, "ephemeral", "e", false, "gone with the session")
	fl.BoolVarP(&sequential, "sequential", "s", false, "with a number at the end of its name that its parent counts up")
	fl.BoolVarP(&n.Container, "container", "c", false, "removed by the server once its last child is gone")
	fl.StringVarP(&ttl, "ttl", "t", "", "removed by the server when it is this long without children and writes: milliseconds, or as 90s (extendedTypesEnabled)")
	fl.BoolVarP(&n.Parents, "parents", "p", false, "make missing parents too")
	return cmd
}

// parseTTL reads milliseconds, as zkCli.sh has them, or a duration.
func parseTTL(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if ms, bad := strconv.ParseInt(s, 10, 32); bad == nil {
		d, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || d < time.Millisecond {
		return 0, usagef("--ttl %s: not milliseconds or a duration, of a millisecond at least", s)
	}
	return d, nil
}

func zkSetCommand(f *zkFlags) *cobra.Command {
	var version int32
	var stat bool
	cmd := &cobra.Command{
		Use:     "set PATH DATA",
		Short:   "Write a node's data; DATA - is read from standard input",
		Example: "  platter zk set /app/lock yours",
		Args:    pathArgument(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("%s needs data", cmd.CommandPath())
			}
			data, err := dataArgument(cmd, args, 1)
			if err != nil {
				return err
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error {
				return t.Set(ctx, args[0], data, version, stat)
			})
		},
	}
	bindVersion(cmd, &version)
	bindStat(cmd, &stat)
	return cmd
}

func bindVersion(cmd *cobra.Command, to *int32) {
	cmd.Flags().Int32VarP(to, "version", "v", -1, "only if the node has this version; -1: whatever it has")
}

func zkDeleteCommand(f *zkFlags) *cobra.Command {
	var version int32
	cmd := &cobra.Command{
		Use:     "delete PATH",
		Short:   "Delete a node that has no children",
		Example: "  platter zk delete /app/lock",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.Delete(ctx, args[0], version) })
		},
	}
	bindVersion(cmd, &version)
	return cmd
}

func zkDeleteAllCommand(f *zkFlags) *cobra.Command {
	var batch int
	cmd := &cobra.Command{
		Use:     "deleteall PATH",
		Aliases: []string{"rmr"},
		Short:   "Delete a node and all below it",
		Example: "  platter zk deleteall /app",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if batch <= 0 {
				return usagef("--batch must be above 0")
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.DeleteAll(ctx, args[0], batch) })
		},
	}
	cmd.Flags().IntVarP(&batch, "batch", "b", 1000, "nodes that are deleted at once")
	return cmd
}

func zkSetACLCommand(f *zkFlags) *cobra.Command {
	var version int32
	var stat, recursive bool
	cmd := &cobra.Command{
		Use:     "setAcl PATH ACL",
		Aliases: []string{"setacl"},
		Short:   "Say who may do what with a node: world:anyone:cdrwa, digest:user:hash:rw, …",
		Example: "  platter zk setAcl /app world:anyone:r",
		Args:    pathArgument(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("%s needs an access list", cmd.CommandPath())
			}
			acl, err := zkcli.ParseACL(args[1])
			if err != nil {
				return usageError{err}
			}
			if recursive && cmd.Flags().Changed("version") {
				return usagef("--version is one node's: it does not go with --recursive")
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error {
				return t.SetACL(ctx, args[0], acl, version, stat, recursive)
			})
		},
	}
	bindVersion(cmd, &version)
	bindStat(cmd, &stat)
	cmd.Flags().BoolVarP(&recursive, "recursive", "R", false, "of all nodes below it too")
	return cmd
}

func zkSyncCommand(f *zkFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "sync PATH",
		Short:   "Wait until what others wrote before can be seen",
		Example: "  platter zk sync /app",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.Sync(ctx, args[0]) })
		},
	}
}

func zkWordCommand(f *zkFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "4lw WORD",
		Short:   "Send a four-letter word (srvr, stat, mntr, cons, …) to each server, and print the answer",
		Example: "  platter zk 4lw srvr",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs one word", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			return zkcli.Word(cmd.Context(), o, args[0])
		},
	}
}
