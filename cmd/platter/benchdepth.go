package main

import (
	"github.com/spf13/cobra"

	"platter/bench/brokerbench"
	"platter/bench/report"
)

func newBenchDepth() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "depth",
		Short: "Show how many batches one write to a log takes, in a broker under load",
		Long: `Show how many record batches the broker writes to a log as one, under 1, 16 and 64 producers at once, on
one partition and on 256. That coalesced writes are faster is what bench io shows; how often a broker gets to
coalesce is seen here, and in the metric platter_log_write_batches of any broker.`,
		Example: "  platter bench depth\n  platter bench depth --batch-bytes 16KiB --in-flight 1",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.load(cmd)
			if err != nil {
				return err
			}
			if len(o.BatchBytes) != 1 {
				return usagef("--batch-bytes is one size here")
			}
			res, err := brokerbench.MeasureDepth(cmd.Context(), o)
			if err != nil {
				return err
			}
			if f.json {
				return report.JSON(cmd.OutOrStdout(), res)
			}
			return report.Depth(cmd.OutOrStdout(), res)
		},
	}
	f.bind(cmd)
	f.bindLoad(cmd)
	f.bindBroker(cmd)
	f.sizes, f.bytes = []string{"4KiB"}, "128MiB"
	cmd.Flags().Lookup("batch-bytes").DefValue, cmd.Flags().Lookup("run-bytes").DefValue = "[4KiB]", f.bytes
	_ = cmd.Flags().MarkHidden("runs") // each load is run once
	return cmd
}
