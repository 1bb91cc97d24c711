package spindlebench

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"platter/bench/stats"
	"platter/engine/spindle"
)

// ColdLoads are what a cold bench compares, for so many readers.
func ColdLoads(readers int) []Load {
	return []Load{
		{Name: "quiet", Tail: true},
		{Name: "one reader", Readers: 1},
		{Name: "each for itself", Readers: readers, Tail: true},
		{Name: "lane, by page cache", Readers: readers, Lane: true, Tail: true},
		{Name: "lane, by buffers", Readers: readers, Lane: true, Buffers: true, Tail: true},
	}
}

// ColdResult is a cold bench: for each load its rounds.
type ColdResult struct {
	Bench    string      `json:"bench"` // "cold"
	On       string      `json:"on"`
	Modelled bool        `json:"modelled"`
	Rows     [][]Figures `json:"rows"`
}

// Print shows medians over the rounds, and ratios of the rounds.
func (r *ColdResult) Print(w io.Writer) error {
	fmt.Fprintf(w, "bench cold on %s: readers of cold data, beside an appender and a reader at its heels\n", on(r.On, r.Modelled))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "load\treaders\tMB/s\tof one reader\t(min–max)\tleast/most\tappend p50\tp99\tp99.9\ttail reader p99\tp99.9\tCPU s/GB\t")
	var one []Figures
	for _, rounds := range r.Rows {
		if len(rounds) > 0 && rounds[0].Load.Readers == 1 {
			one = rounds
		}
	}
	for _, rounds := range r.Rows {
		l := rounds[0].Load
		ratio, fair, cost := "", "", ""
		if l.Readers > 0 && len(one) == len(rounds) {
			q := ratioOf(rounds, one)
			ratio = fmt.Sprintf("%.2f\t%.2f–%.2f", q.Median, q.Min, q.Max)
			fair = fmt.Sprintf("%.2f", median(rounds, func(f Figures) float64 { return float64(f.Least) / float64(max(f.Most, 1)) }))
		} else {
			ratio = "\t"
		}
		if !r.Modelled && l.Readers > 0 {
			cost = fmt.Sprintf("%.2f", median(rounds, func(f Figures) float64 { return f.CPUSeconds / (f.BytesPerSec * f.Seconds) * 1e9 }))
		}
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", l.Name, l.Readers,
			median(rounds, func(f Figures) float64 { return f.BytesPerSec / 1e6 }), ratio, fair,
			took(rounds, func(f Figures) time.Duration { return f.Append.P50 }), took(rounds, func(f Figures) time.Duration { return f.Append.P99 }),
			took(rounds, func(f Figures) time.Duration { return f.Append.P999 }),
			took(rounds, func(f Figures) time.Duration { return f.TailRead.P99 }), took(rounds, func(f Figures) time.Duration { return f.TailRead.P999 }), cost)
	}
	return t.Flush()
}

func on(what string, modelled bool) string {
	if modelled {
		return what + " (modelled)"
	}
	return what
}

func median(rounds []Figures, f func(Figures) float64) float64 {
	vs := make([]float64, len(rounds))
	for i, x := range rounds {
		vs[i] = f(x)
	}
	return stats.Median(vs)
}

func took(rounds []Figures, f func(Figures) time.Duration) string {
	d := time.Duration(median(rounds, func(x Figures) float64 { return float64(f(x)) }))
	if d == 0 {
		return ""
	}
	return d.Round(d / 100).String()
}

func ratioOf(a, b []Figures) stats.Ratio {
	as, bs := make([]stats.Sample, len(a)), make([]stats.Sample, len(b))
	for i := range a {
		as[i] = stats.Sample{Bytes: int64(a[i].BytesPerSec), Seconds: 1}
		bs[i] = stats.Sample{Bytes: int64(b[i].BytesPerSec), Seconds: 1}
	}
	return stats.PairRatio(as, bs, stats.Sample.BytesPerSecond)
}

// PartitionWays are what a bench of appends compares, for so many partitions.
func PartitionWays(files int) []Growth {
	many := fmt.Sprintf("%d partitions", files)
	return []Growth{
		{Name: "one file", Files: 1},
		{Name: many, Files: files},
		{Name: many + ", grown ahead", Files: files, GrowAhead: true},
		{Name: many + ", written behind", Files: files, WriteBehind: spindleWriteBehind},
	}
}

// spindleWriteBehind is the shortest run that is ever written behind.
const spindleWriteBehind = spindle.WriteBehindMin

// PartitionResult is a bench of appends: for each way its rounds, and on a modelled disk the dirty limit at which the second way
// falls below 90% of one file's rate.
type PartitionResult struct {
	Bench      string       `json:"bench"` // "partitions"
	On         string       `json:"on"`
	Modelled   bool         `json:"modelled"`
	Durability string       `json:"durability"` // what an append promised: "pagecache"
	Rows       [][]Appended `json:"rows"`
	Budgets    []Appended   `json:"budgets,omitempty"`
	LimitBytes int64        `json:"limit_bytes,omitempty"`
}

// Print shows medians over the rounds, and ratios of the rounds to one file.
func (r *PartitionResult) Print(w io.Writer) error {
	fmt.Fprintf(w, "bench partitions on %s: appends without sync, durability %s\n", on(r.On, r.Modelled), r.Durability)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\tfiles\tMB/s\tof one file\t(min–max)\tpieces a file\tCPU s\t")
	for _, rounds := range r.Rows {
		rates, base, cpu := make([]stats.Sample, len(rounds)), make([]stats.Sample, len(rounds)), make([]float64, len(rounds))
		for i, a := range rounds {
			rates[i] = stats.Sample{Bytes: int64(a.BytesPerSec), Seconds: 1}
			base[i] = stats.Sample{Bytes: int64(r.Rows[0][i].BytesPerSec), Seconds: 1}
			cpu[i] = a.CPUSeconds
		}
		q := stats.PairRatio(rates, base, stats.Sample.BytesPerSecond)
		pieces, seconds := "", ""
		if r.Modelled {
			pieces = fmt.Sprintf("%.1f", rounds[0].Pieces)
		} else {
			seconds = fmt.Sprintf("%.1f", stats.Median(cpu))
		}
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.2f\t%.2f–%.2f\t%s\t%s\t\n", rounds[0].Growth.Name, rounds[0].Growth.Files,
			stats.Median(stats.Each(rates, stats.Sample.BytesPerSecond))/1e6, q.Median, q.Min, q.Max, pieces, seconds)
	}
	if err := t.Flush(); err != nil || len(r.Budgets) == 0 {
		return err
	}
	fmt.Fprintln(w, "\nby the kernel's dirty limit:")
	for _, a := range r.Budgets {
		fmt.Fprintf(t, "%s\t%d MiB\t%.1f MB/s\t%.2f\t\n", a.Growth.Name, a.DirtyBytes>>20, a.BytesPerSec/1e6, a.BytesPerSec/r.Budgets[0].BytesPerSec)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "at least 90%% of one file's rate down to a limit of %d MiB\n", r.LimitBytes>>20)
	return err
}
