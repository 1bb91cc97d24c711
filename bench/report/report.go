// Package report prints results of benches, for people and as JSON for programs.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"platter/bench/brokerbench"
	"platter/bench/stats"
)

// JSON prints any result, indented.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Broker prints a produce or fetch bench. Figures are medians; a ratio is broker over bare program, by
// pairs of neighbouring runs, with the smallest and largest pair beside it.
func Broker(w io.Writer, r *brokerbench.Result) error {
	shape := fmt.Sprintf("acks %d", r.Acks)
	if r.FetchBytes > 0 {
		shape = fmt.Sprintf("%d bytes a fetch, from the page cache", r.FetchBytes)
	}
	fmt.Fprintf(w, "bench %s: durability %s, %s, records of %d bytes, one partition, one connection\n",
		r.Bench, r.Durability, shape, r.RecordBytes)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "batch bytes\tbare MB/s\tCPU s/GB\tbroker MB/s\tCPU s/GB\tbytes per CPU s\t(min–max)\tthroughput\t(min–max)\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%d\t%.0f\t%.3f\t%.0f\t%.3f\t%.2f\t%.2f–%.2f\t%.2f\t%.2f–%.2f\t\n", row.BatchBytes,
			mbps(row.Bare), cost(row.Bare), mbps(row.Broker), cost(row.Broker),
			row.PerCPU.Median, row.PerCPU.Min, row.PerCPU.Max,
			row.Throughput.Median, row.Throughput.Min, row.Throughput.Max)
	}
	return t.Flush()
}

// Ceiling prints the bare programs alone.
func Ceiling(w io.Writer, what string, batchBytes int, ss []stats.Sample) error {
	_, err := fmt.Fprintf(w, "%s, %d bytes at a time: %.0f MB/s, %.3f CPU s/GB (median of %d)\n", what, batchBytes, mbps(ss), cost(ss), len(ss))
	return err
}

// Restart prints a restart bench.
func Restart(w io.Writer, r *brokerbench.RestartResult) error {
	_, err := fmt.Fprintf(w, "restart with %d partitions (medians of %d): after kill -9 listening after %.0f ms, ready after %.0f ms; after a clean stop ready after %.0f ms\n",
		r.Partitions, len(r.ReadySeconds), 1e3*r.MedianListen, 1e3*r.MedianReady, 1e3*r.MedianCleanReady)
	return err
}

// Footprint prints a footprint.
func Footprint(w io.Writer, r *brokerbench.Footprint) error {
	fmt.Fprintf(w, "first answer %.0f ms after the process's start\n", 1e3*r.FirstAnswerSeconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%.0f MB resident\n", row.Situation, float64(row.RSSBytes)/1e6)
	}
	return t.Flush()
}

// Depth prints how many batches the writes of a broker under load took.
func Depth(w io.Writer, r *brokerbench.Depth) error {
	fmt.Fprintf(w, "batches that one vectored write takes: batches of %d bytes, %d unanswered requests a producer\n", r.BatchBytes, r.InFlight)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "producers\tpartitions\tmean\tp50 up to\tp99 up to\talone\tMB/s\tCPU s/GB\t")
	for i := range r.Rows {
		row := &r.Rows[i]
		fmt.Fprintf(t, "%d\t%d\t%.1f\t%d\t%d\t%.0f%%\t%.0f\t%.3f\t\n", row.Producers, row.Partitions, row.Mean(),
			row.P50, row.P99, 100*row.Alone, row.Sample.BytesPerSecond()/1e6, row.Sample.CPUSecondsPerGB())
	}
	return t.Flush()
}

func mbps(ss []stats.Sample) float64 {
	return stats.Median(stats.Each(ss, stats.Sample.BytesPerSecond)) / 1e6
}

func cost(ss []stats.Sample) float64 {
	return stats.Median(stats.Each(ss, stats.Sample.CPUSecondsPerGB))
}
