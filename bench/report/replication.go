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
	fmt.Fprintln(t, "batch bytes\tone replica MB/s\tCPU s/GB\tthree replicas MB/s\tleader CPU s/GB\tfollower CPU s/GB\tbytes a fetch\tleader bytes per CPU s, three over one\t(min–max)\t")
	for i := range r.Rows {
		row := &r.Rows[i]
		fmt.Fprintf(t, "%d\t%.0f\t%.3f\t%.0f\t%.3f\t%.3f\t%.0f\t%.2f\t%.2f–%.2f\t\n", row.BatchBytes, mbps(row.One), cost(row.One),
			mbps(row.Three), cost(row.Three), cost(row.Follower), stats.Median(row.Fetch), row.Leader.Median, row.Leader.Min, row.Leader.Max)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "a lost disk is filled at %.0f MB/s (%.3f CPU s/GB of the follower); sendfile, socket and write alone: %.0f MB/s (%.3f); ratio %.2f (%.2f–%.2f)\n",
		mbps(r.Refills), cost(r.Refills), mbps(r.Bare), cost(r.Bare), r.Ratio.Median, r.Ratio.Min, r.Ratio.Max)
	fmt.Fprintf(w, "while producers keep going: %.0f MB/s; a producer beside it, acks all: p50 %.1f ms, p99 %.1f ms, max %.0f ms; without refills: %.1f, %.1f, %.0f\n",
		mbps(r.Busy), r.Beside.P50, r.Beside.P99, r.Beside.Max, r.Quiet.P50, r.Quiet.P99, r.Quiet.Max)
	m := &r.Many
	_, err := fmt.Fprintf(w, "%d partitions with three replicas, idle: %.2f%%, %.2f%%, %.2f%% of a processor; %d-byte batches beside them: %.3f CPU s/GB of the leader, without them %.3f; bytes per CPU s, with over without: %.2f (%.2f–%.2f)\n",
		m.Partitions, m.IdlePercent[0], m.IdlePercent[1], m.IdlePercent[2], m.BatchBytes, cost(m.With), cost(m.Without), m.Ratio.Median, m.Ratio.Min, m.Ratio.Max)
	return err
}
