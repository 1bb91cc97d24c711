package disklab

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Compare lays two runs side by side, cell by cell: what both have, and how much of the first the second reaches.
func Compare(w io.Writer, nameA string, a *Result, nameB string, b *Result) error {
	for _, side := range []struct {
		letter, name string
		r            *Result
	}{{"A", nameA, a}, {"B", nameB, b}} {
		fmt.Fprintf(w, "%s: %s: %s", side.letter, side.name, side.r.On)
		if !side.r.Modelled {
			fmt.Fprintf(w, " (%s)", side.r.Profile.What())
		}
		if side.r.Env != nil {
			fmt.Fprintf(w, ", %s", side.r.Env.Kernel)
		}
		fmt.Fprintln(w)
	}
	if a.Modelled != b.Modelled {
		fmt.Fprintln(w, "One of the two is a model: it is no real disk.")
	}
	if a.Seed != b.Seed || a.SpanBytes != b.SpanBytes || a.BudgetBytes != b.BudgetBytes {
		fmt.Fprintln(w, "They differ in seed, budget or span of random positions too: compare them with care.")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "what\tA%s MB/s\tB%s MB/s\tB/A\tA p99\tB p99\t\n", a.word(), b.word())
	for i := range a.Cells {
		ca := &a.Cells[i]
		cb := b.find(func(c *Cell) bool { return c.Group == ca.Group && c.Name == ca.Name })
		if cb == nil || ca.Skipped != "" || ca.Ops == 0 {
			continue
		}
		ratio := ""
		if ca.BytesPerSec > 0 {
			ratio = fmt.Sprintf("%.2f", cb.BytesPerSec/ca.BytesPerSec)
		}
		fmt.Fprintf(t, "%s: %s\t%s\t%s\t%s\t%s\t%s\t\n", ca.Group, ca.Name, mb(ca.BytesPerSec), mb(cb.BytesPerSec), ratio, span(us(ca.P99)), span(us(cb.P99)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, only := range []struct {
		letter string
		n      int
	}{{"A", a.lacks(b)}, {"B", b.lacks(a)}} {
		if only.n > 0 {
			fmt.Fprintf(w, "%d cells have figures in %s only.\n", only.n, only.letter)
		}
	}
	return nil
}

// lacks is how many cells of r have figures and have none in o.
func (r *Result) lacks(o *Result) (n int) {
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Skipped == "" && c.Ops > 0 && o.find(func(x *Cell) bool { return x.Group == c.Group && x.Name == c.Name }) == nil {
			n++
		}
	}
	return n
}
