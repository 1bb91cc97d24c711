package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"platter/bench/stats"
)

// table collects the rows of a comparison.
type table struct {
	title string
	rows  []row
}

// row is one figure of both sides, medians; Ratio is ours over theirs, the median of the rounds'.
type row struct {
	What   string  `json:"what"`
	Ours   float64 `json:"ours"`
	Theirs float64 `json:"theirs,omitempty"`
	Unit   string  `json:"unit"`
	Ratio  float64 `json:"ratio,omitempty"`
	Low    float64 `json:"ratio_min,omitempty"`
	High   float64 `json:"ratio_max,omitempty"`
	Wanted string  `json:"wanted,omitempty"`
}

func medianRatio(a, b []float64) (median, low, high float64) {
	var r []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			r = append(r, a[i]/b[i])
		}
	}
	if len(r) == 0 {
		return 0, 0, 0
	}
	return stats.Median(r), slices.Min(r), slices.Max(r)
}

func (t *table) add(what, unit string, ours, theirs []float64, wanted string) {
	r := row{What: what, Unit: unit, Ours: stats.Median(ours), Theirs: stats.Median(theirs), Wanted: wanted}
	r.Ratio, r.Low, r.High = medianRatio(ours, theirs)
	t.rows = append(t.rows, r)
}

func each[T any](v []T, f func(T) float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}

// many is from how many sessions on a server is held to the wanted ratios of a busy one.
const many = 64

func (t *table) cell(c cell, ours, theirs, bare []run) {
	what := fmt.Sprintf("%s, %d sessions", c.Op, c.Sessions)
	if c.Depth > 1 {
		what += fmt.Sprintf(" with %d in flight", c.Depth)
	}
	wantRate, wantP99 := "", ""
	if c.Sessions >= many {
		wantRate, wantP99 = "twice at least", "half at most"
	}
	rate := func(r run) float64 { return r.Rate }
	t.add(what, "ops/s", each(ours, rate), each(theirs, rate), wantRate)
	p99 := func(r run) float64 { return ms(r.P99) }
	t.add("  p99", "ms", each(ours, p99), each(theirs, p99), wantP99)
	cpu := func(r run) float64 { return float64(r.CPU.Microseconds()) / float64(max(1, r.Count)) }
	t.add("  CPU", "µs an op", each(ours, cpu), each(theirs, cpu), "")
	if len(bare) > 0 {
		t.add("  beside the bare loop", "ops/s", each(ours, rate), each(bare, rate), "0.9 at least")
	}
}

func (t *table) durations(what string, ours, theirs []time.Duration, wanted string) {
	t.add(what, "ms", each(ours, ms), each(theirs, ms), wanted)
}

func (t *table) memory(what string, ours, theirs int64, wanted string) {
	mb := func(n int64) []float64 { return []float64{float64(n) / 1e6} }
	t.add(what, "MB", mb(ours), mb(theirs), wanted)
}

func (t *table) print(file string) error {
	fmt.Println(t.title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tours\ttheirs\tunit\tratio\t(min–max)\twanted\t")
	for _, r := range t.rows {
		theirs, ratio, spread := "–", "–", ""
		if r.Theirs != 0 {
			theirs, ratio = number(r.Theirs), fmt.Sprintf("%.2f", r.Ratio)
			spread = fmt.Sprintf("%.2f–%.2f", r.Low, r.High)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.What, number(r.Ours), theirs, r.Unit, ratio, spread, r.Wanted)
	}
	if err := w.Flush(); err != nil || file == "" {
		return err
	}
	b, err := json.MarshalIndent(t.rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

func number(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
