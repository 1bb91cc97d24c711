package main

import (
	"context"

	"github.com/spf13/cobra"

	"platter/cmd/zkcli"
	"platter/coord/zkclient"
)

func zkListQuotaCommand(f *zkFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "listquota PATH",
		Short:   "Print the limits on a node and all below it, and what there is",
		Example: "  platter zk listquota /app",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.ListQuota(ctx, args[0]) })
		},
	}
}

func zkSetQuotaCommand(f *zkFlags) *cobra.Command {
	var asked zkclient.Quota
	cmd := &cobra.Command{
		Use:   "setquota PATH",
		Short: "Limit how many nodes, or bytes, a node and all below it may be",
		Long: `Limits how many nodes, or bytes, a node and all below it may be. Beyond a soft limit the server warns in its log; beyond
a hard one it refuses, if its enforceQuota is set.`,
		Example: "  platter zk setquota -N 1000 -b 1000000 /app",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			some := false
			for _, name := range []string{"nodes", "bytes", "nodes-hard", "bytes-hard"} {
				if cmd.Flags().Changed(name) {
					some = true
					if v, _ := cmd.Flags().GetInt64(name); v <= 0 {
						return usagef("--%s must be greater than zero", name)
					}
				}
			}
			if !some {
				return usagef("%s needs one of -n, -b, -N, -B", cmd.CommandPath())
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error {
				return t.SetQuota(ctx, args[0], func(q *zkclient.Quota) {
					for _, x := range [...]struct {
						to    *int64
						asked int64
					}{{&q.Count, asked.Count}, {&q.Bytes, asked.Bytes}, {&q.CountHard, asked.CountHard}, {&q.BytesHard, asked.BytesHard}} {
						if x.asked > 0 {
							*x.to = x.asked
						}
					}
				})
			})
		},
	}
	fl := cmd.Flags()
	fl.Int64VarP(&asked.Count, "nodes", "n", 0, "soft limit of nodes")
	fl.Int64VarP(&asked.Bytes, "bytes", "b", 0, "soft limit of bytes")
	fl.Int64VarP(&asked.CountHard, "nodes-hard", "N", 0, "hard limit of nodes")
	fl.Int64VarP(&asked.BytesHard, "bytes-hard", "B", 0, "hard limit of bytes")
	return cmd
}

func zkDeleteQuotaCommand(f *zkFlags) *cobra.Command {
	var nodes, bytes, nodesHard, bytesHard bool
	cmd := &cobra.Command{
		Use:     "delquota PATH",
		Short:   "Take limits of a node away, or all of its quota",
		Example: "  platter zk delquota -n /app",
		Args:    pathArgument(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			var change func(*zkclient.Quota)
			if nodes || bytes || nodesHard || bytesHard {
				change = func(q *zkclient.Quota) {
					for to, gone := range map[*int64]bool{&q.Count: nodes, &q.Bytes: bytes, &q.CountHard: nodesHard, &q.BytesHard: bytesHard} {
						if gone {
							*to = -1
						}
					}
				}
			}
			return f.do(cmd, func(ctx context.Context, t *zkcli.Tool) error { return t.DeleteQuota(ctx, args[0], change) })
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&nodes, "nodes", "n", false, "the soft limit of nodes")
	fl.BoolVarP(&bytes, "bytes", "b", false, "the soft limit of bytes")
	fl.BoolVarP(&nodesHard, "nodes-hard", "N", false, "the hard limit of nodes")
	fl.BoolVarP(&bytesHard, "bytes-hard", "B", false, "the hard limit of bytes")
	return cmd
}
