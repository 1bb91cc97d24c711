package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"platter/bench/brokerbench"
	"platter/bench/stats"
)

// Replication prints a replication bench.
func Replication(w io.Writer, r *brokerbench.Replication) error {
	fmt.Fprintf(w, "bench replication: durability %s, acks all, one partition, three brokers on this machine\n", r.Durability)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "batch bytes\tone replica MB/s\tCPU s/GB\tthree replicas MB/s\tleader CPU s/GB\tfollower CPU s/GB\tleader bytes per CPU s, three over one\t(min–max)\t")
	for i := range r.Rows {
		row := &r.Rows[i]
		fmt.Fprintf(t, "%d\t%.0f\t%.3f\t%.0f\t%.3f\t%.3f\t%.2f\t%.2f–%.2f\t\n", row.BatchBytes, mbps(row.One), cost(row.One),
			mbps(row.Three), cost(row.Three), cost(row.Follower), row.Leader.Median, row.Leader.Min, row.Leader.Max)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "a lost disk is filled at %.0f MB/s (%.3f CPU s/GB of the follower), a bare reader gets %.0f MB/s: ratio %.2f (%.2f–%.2f)\n",
		mbps(r.Refills), cost(r.Refills), mbps(r.Bare), r.Ratio.Median, r.Ratio.Min, r.Ratio.Max)
	_, err := fmt.Fprintf(w, "while a producer keeps going: %.0f MB/s\n", stats.Median(stats.Each(r.Busy, stats.Sample.BytesPerSecond))/1e6)
	return err
}
