package disklab

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"platter/io/profile"
)

// Caveats are what is to be known beside any figure of the run.
func (r *Result) Caveats() (lines []string) {
	if r.Modelled {
		return []string{
			"Every figure here is modelled: arithmetic of seek, rotation and transfer (io/hddsim). It is no real disk.",
			"Random positions are spread over the whole modelled device.",
		}
	}
	lines = append(lines, fmt.Sprintf("Random positions are spread over a file of %s: on a spinning disk, far ways (over the whole disk) take about twice as long.", profile.Size(r.SpanBytes)))
	if r.Direct != "yes" {
		lines = append(lines, "The device itself could not be measured past the page cache here ("+r.Direct+").")
	}
	return append(lines, fmt.Sprintf("Each figure is from a short run (all of them together %.0f s, files of up to %s): what else the machine does weighs on it. A cache before the disk, of a controller or a virtual machine's host, can hold such files.",
		r.Seconds, profile.Size(r.BudgetBytes)))
}

// title is the heading of everything that shows the result.
func (r *Result) title() string {
	if r.Modelled {
		return "What this disk is good for: " + r.On
	}
	return fmt.Sprintf("What this disk is good for: %s (%s)", r.On, r.Profile.What())
}

// Print shows the words, the settings and all figures.
func (r *Result) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n", r.title())
	for _, l := range r.Verdict {
		fmt.Fprintf(w, "- %s\n", l)
	}
	fmt.Fprintln(w, "\nSettings")
	for _, a := range r.Advice {
		mark := "   <- set this"
		switch {
		case a.Same:
			mark = "   (as it is; need not be set)"
		case a.Optional:
			mark = "   (if you want it)"
		}
		value := "=" + a.Value
		if a.Value == Unset {
			value = ""
		}
		if size := a.Size(); size != "" {
			value += " (" + size + ")"
		}
		fmt.Fprintf(w, "  %s%s%s\n", a.Setting, value, mark)
		if about := a.About(); about != "" {
			fmt.Fprintf(w, "      %s\n", about)
		}
		fmt.Fprintf(w, "      because %s.\n", a.Why)
	}
	for _, g := range Groups {
		if err := r.printGroup(w, g); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, l := range r.Caveats() {
		fmt.Fprintf(w, "* %s\n", l)
	}
	return nil
}

func (r *Result) printGroup(w io.Writer, g Group) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows := r.rows(g)
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s%s\n", Titles[g], r.word())
	for _, row := range append([][]string{head(g)}, rows...) {
		for _, cell := range row {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, why := range r.leftOut(g) {
		fmt.Fprintf(w, "  left out: %s\n", why)
	}
	return nil
}

// leftOut is why cells of a group have no figures.
func (r *Result) leftOut(g Group) (why []string) {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Group == g && c.Skipped != "" && !slices.Contains(why, c.Skipped) {
			why = append(why, c.Skipped)
		}
	}
	return why
}

// word is what stands beside every figure of a model.
func (r *Result) word() string {
	if r.Modelled {
		return " (modelled)"
	}
	return ""
}

func head(g Group) []string {
	switch g {
	case Cold:
		return []string{"what", "readers' MB/s", "append p50", "p99", "slowest"}
	case Segment:
		return []string{"what", "write MB/s", "read back MB/s", "pieces a file"}
	}
	return []string{"what", "MB/s", "a second", "p50", "p99", "slowest"}
}

// rows is a group's figures as text.
func (r *Result) rows(g Group) (rows [][]string) {
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Group != g {
			continue
		}
		name := c.Name
		if c.Modelled {
			name += " (modelled)"
		}
		row := []string{name}
		switch {
		case c.Skipped != "":
			row = append(row, "left out")
		case g == Cold:
			row = append(row, mb(c.BytesPerSec), span(us(c.P50)), span(us(c.P99)), span(us(c.Max)))
			if !c.Appender {
				row = row[:2]
			}
		case g == Segment:
			pieces := ""
			if c.Pieces > 0 {
				pieces = fmt.Sprintf("%.1f", c.Pieces)
			}
			row = append(row, mb(c.BytesPerSec), mb(c.ReadBack), pieces)
		default:
			row = append(row, mb(c.BytesPerSec), count(c.OpsPerSec), span(us(c.P50)), span(us(c.P99)), span(us(c.Max)))
		}
		rows = append(rows, row)
	}
	return rows
}

func mb(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 10e6:
		return fmt.Sprintf("%.0f", v/1e6)
	}
	return fmt.Sprintf("%.2f", v/1e6)
}
