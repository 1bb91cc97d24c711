package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"platter/bench/iobench"
	"platter/bench/stats"
)

// groupTitles say what a group's table is about. A is the side on the left.
var groupTitles = map[iobench.Group]string{
	iobench.Coalescing: "One vectored write against a write each (A: coalesced)",
	iobench.AutoChoice: "auto against the backend that it chose (A: auto)",
	iobench.Backends:   "Backends against plain system calls",
	iobench.Cold:       "Ways to read what is not in the page cache",
	iobench.Sends:      "Ways to send from the page cache, against sendfile",
	iobench.Empty:      "Handing over empty operations, against a bare ring (operations instead of bytes)",
}

// IO prints a run of `bench io`: what was measured where, a table a group, and what it shows.
func IO(w io.Writer, r *iobench.Result) error {
	env(w, &r.Env)
	for _, g := range groups(r) {
		fmt.Fprintf(w, "\n%s\n", groupTitles[g])
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "operation\tsize\tfiles\tdepth\tA\tB\tA MB/s\tB MB/s\tA/B\t95%\toverall\tA CPU s/GB\tB\tCPU A/B\tA p99 µs\tB\tpairs\t")
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Group != g {
				continue
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t", c.Op, iobench.Size(c.SizeBytes), c.Files, c.Depth, side(&c.A), side(&c.B))
			if c.Skipped != "" {
				fmt.Fprintf(t, "skipped: %s\t\n", c.Skipped)
				continue
			}
			fmt.Fprintf(t, "%.0f\t%.0f\t%.2f\t%s\t%.2f\t%s\t%s\t%s\t%.0f\t%.0f\t%d\t\n", c.A.BytesPerSecond/1e6, c.B.BytesPerSecond/1e6,
				c.Throughput.Ratio, span(c.Throughput), c.Overall.Ratio, costOf(&c.A), costOf(&c.B), ratioOr(c.CPU), c.A.P99Us, c.B.P99Us, c.Pairs)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, c := range r.Claims {
		mark := "holds"
		if !c.Holds {
			mark = "DOES NOT HOLD"
		}
		fmt.Fprintf(w, "%s: %s\n  %s\n", mark, c.What, c.Got)
	}
	return nil
}

func env(w io.Writer, e *iobench.Env) {
	fmt.Fprintf(w, "bench io: %s\n", e)
	fmt.Fprint(w, "backends:")
	for _, name := range slices.Sorted(maps.Keys(e.Backends)) {
		fmt.Fprintf(w, " %s: %s;", name, e.Backends[name])
	}
	fmt.Fprint(w, "\nauto:")
	for _, op := range slices.Sorted(maps.Keys(e.Auto)) {
		fmt.Fprintf(w, " %s: %s;", op, e.Auto[op])
	}
	fmt.Fprintln(w)
}

// groups are those that occur, in order.
func groups(r *iobench.Result) (out []iobench.Group) {
	for i := range r.Cells {
		if g := r.Cells[i].Group; !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

func side(s *iobench.Side) string { return s.Backend + " " + s.How }

func span(i stats.Interval) string { return fmt.Sprintf("%.2f–%.2f", i.Low, i.High) }

func costOf(s *iobench.Side) string {
	if s.CPUSecondsPerGB == 0 {
		return "?"
	}
	return fmt.Sprintf("%.3f", s.CPUSecondsPerGB)
}

func ratioOr(i stats.Interval) string {
	if i == (stats.Interval{}) {
		return "?"
	}
	return fmt.Sprintf("%.2f", i.Ratio)
}

// Compare prints results of bench io side by side, the first as what the others are held against.
func Compare(w io.Writer, names []string, results []*iobench.Result) error {
	for i, r := range results {
		fmt.Fprintf(w, "[%d] %s: %s\n", i+1, names[i], &r.Env)
	}
	fmt.Fprint(w, "These are different runs, not neighbours in time: small differences are chance.\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "operation\tway\tsize\tfiles\tdepth\tbackend\t")
	for i := range results {
		fmt.Fprintf(t, "[%d] MB/s\tCPU s/GB\t", i+1)
		if i > 0 {
			fmt.Fprintf(t, "[%d]/[1]\t", i+1)
		}
	}
	fmt.Fprintln(t)
	for _, row := range iobench.Compare(results) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\t", row.Op, row.How, iobench.Size(row.SizeBytes), row.Files, row.Depth, row.Backend)
		for i, v := range row.BytesPerSecond {
			if v == 0 {
				fmt.Fprint(t, "—\t—\t")
			} else {
				fmt.Fprintf(t, "%.0f\t%.3f\t", v/1e6, row.CPUSecondsPerGB[i])
			}
			switch first := row.BytesPerSecond[0]; {
			case i == 0:
			case v == 0 || first == 0:
				fmt.Fprint(t, "—\t")
			default:
				fmt.Fprintf(t, "%.2f\t", v/first)
			}
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
