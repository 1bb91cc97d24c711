package main

import (
	"context"

	"github.com/spf13/cobra"

	"platter/cmd/client"
)

func clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster",
		Short:   "Show how a cluster is",
		Example: "  platter cluster describe",
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(clusterDescribeCommand())
	return cmd
}

func clusterDescribeCommand() *cobra.Command {
	var f clientFlags
	var check, asJSON bool
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show brokers, controller, and which partitions are offline or under-replicated",
		Long: `Shows the brokers of a cluster, its controller, and how its partitions are: offline are those of which no
replica is there, leaderless those without a leader, under-replicated those with fewer replicas in sync than they
should have. Replicas that are behind their leaders are listed with their lag, in records.`,
		Example: `  platter cluster describe
  platter cluster describe --json
  platter cluster describe --check || echo "look at it"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.do(cmd, func(ctx context.Context, o client.Options) error {
				return o.DescribeCluster(ctx, cmd.OutOrStdout(), check, asJSON)
			})
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&check, "check", false, "exit with 1 when a partition has no leader or is under-replicated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
