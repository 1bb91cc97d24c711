package main

import (
	"github.com/spf13/cobra"

	"platter/bench/brokerbench"
	"platter/bench/report"
)

func newBenchReplication() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "replication",
		Short: "Measure what three replicas cost over one, and how fast a lost disk is filled again",
		Long: `Starts a coordinator and three brokers on this machine. Each pair of runs writes the same batches, acknowledged
by all replicas in sync, to a topic with one replica and to one with three; the CPU seconds are each broker's alone.
Then one broker's disk is taken away, again and again, until its replica is in sync: beside a bare program that
moves the same bytes by sendfile, a socket and write, and while producers keep going, one of them to another
partition of the same leader, whose waits are told. At last 2,000 partitions in which nothing happens: what they
cost idle, and beside small batches.`,
		Example: "  platter bench replication\n  platter bench replication --batch-bytes 1MiB --run-bytes 2GiB",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.load(cmd)
			if err != nil {
				return err
			}
			res, err := brokerbench.MeasureReplication(cmd.Context(), o)
			if err != nil {
				return err
			}
			if f.json {
				return report.JSON(cmd.OutOrStdout(), res)
			}
			return report.Replication(cmd.OutOrStdout(), res)
		},
	}
	f.bind(cmd)
	f.bindLoad(cmd)
	f.bindBroker(cmd)
	f.bytes = "512MiB"
	cmd.Flags().Lookup("run-bytes").DefValue = f.bytes
	_ = cmd.Flags().MarkHidden("acks") // all, or nothing would be measured
	return cmd
}
