package agree

import (
	"fmt"
	"io"
	"strings"
)

// fifth is how far apart two may be, as a factor, to be called alike.
const fifth = 1.2

// Table prints the rows as Markdown: medians of the rounds, with the least and the most, and how the model and fio compare with
// platter's figure in the lab. Cells that are off by more than a fifth are marked.
func Table(w io.Writer, rows []Row) {
	fmt.Fprintln(w, "| cell | model (modelled) | lab, platter | lab, fio | model : platter | fio : platter | drive at work: model, platter, fio |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, r := range rows {
		p, f := Median(r.Platter), Median(r.Fio)
		fmt.Fprintf(w, "| %s: %s | %s | %s | %s | %s | %s | %s |\n", r.Cell.Group, r.Cell.Name, one(r.Model), several(r.Platter), several(r.Fio),
			mark(r.Model.Rate()/p.Rate()), mark(f.Rate()/p.Rate()),
			strings.Join([]string{work(r.Model), work(p), work(f)}, ", "))
	}
}

func one(f Figure) string {
	each := f.Bytes / max(1, f.Ops)
	if each < 64<<10 {
		return fmt.Sprintf("%.3g a second", f.PerSec())
	}
	return fmt.Sprintf("%.3g MB/s", f.Rate()/1e6)
}

func several(figures []Figure) string {
	least, most := figures[0], figures[0]
	for _, f := range figures {
		if f.Rate() < least.Rate() {
			least = f
		}
		if f.Rate() > most.Rate() {
			most = f
		}
	}
	s := one(Median(figures))
	if len(figures) > 1 {
		number := func(f Figure) string { return strings.Fields(one(f))[0] }
		s += fmt.Sprintf(" (%s–%s)", number(least), number(most))
	}
	return s
}

// work is the part of the time that the drive was at work, and for how long an operation.
func work(f Figure) string {
	return fmt.Sprintf("%.0f%% %.2g ms", 100*ratio(f.Busy, f.Seconds), 1e3*f.BusyEach())
}

// mark is a ratio, with a star where it is more than a fifth off.
func mark(v float64) string {
	s := fmt.Sprintf("%.2f", v)
	if v > fifth || v < 1/fifth {
		s += " *"
	}
	return s
}
