package iobench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"platter/bench/stats"
)

// Load reads what `bench io --json` wrote.
func Load(r io.Reader) (*Result, error) {
	var res Result
	if err := json.NewDecoder(io.LimitReader(r, resultBytesMax)).Decode(&res); err != nil {
		return nil, fmt.Errorf("no result of bench io: %w", err)
	}
	if len(res.Cells) == 0 {
		return nil, fmt.Errorf("no result of bench io: it has no cells")
	}
	return &res, nil
}

// resultBytesMax is far beyond what a full run writes.
const resultBytesMax = 64 << 20

// Row is one way to do one operation, in several results.
type Row struct {
	Op        string
	SizeBytes int
	Files     int
	Depth     int
	Backend   string
	How       string
	// One a result, in their order; zero where the result has no such row.
	BytesPerSecond  []float64
	CPUSecondsPerGB []float64
}

// Compare lays results side by side: every side of every cell, by operation, way and backend. The results
// are of different runs, not of neighbours in time: what differs a little differs by chance.
func Compare(results []*Result) []Row {
	type key struct {
		op               string
		size, files, dep int
		backend, how     string
	}
	type runs struct{ bytesPerSecond, cpuSecondsPerGB []float64 }
	of := map[key][]runs{}
	for i, r := range results {
		for j := range r.Cells {
			c := &r.Cells[j]
			for _, s := range []*Side{&c.A, &c.B} {
				if len(s.Samples) == 0 {
					continue
				}
				k := key{c.Op, c.SizeBytes, c.Files, c.Depth, s.Backend, s.How}
				if of[k] == nil {
					of[k] = make([]runs, len(results))
				}
				of[k][i].bytesPerSecond = append(of[k][i].bytesPerSecond, s.Typical...)
				of[k][i].cpuSecondsPerGB = append(of[k][i].cpuSecondsPerGB, stats.Each(s.Samples, stats.Sample.CPUSecondsPerGB)...)
			}
		}
	}
	var rows []Row
	for k, each := range of {
		row := Row{Op: k.op, SizeBytes: k.size, Files: k.files, Depth: k.dep, Backend: k.backend, How: k.how}
		for _, r := range each {
			row.BytesPerSecond = append(row.BytesPerSecond, stats.Median(r.bytesPerSecond))
			row.CPUSecondsPerGB = append(row.CPUSecondsPerGB, stats.Median(r.cpuSecondsPerGB))
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.How, b.How), cmp.Compare(a.SizeBytes, b.SizeBytes),
			cmp.Compare(a.Files, b.Files), cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Backend, b.Backend))
	})
	return rows
}
