package agree

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// fifth is how far apart two may be, as a factor, to be called alike.
const fifth = 1.2

// Table prints the rows as Markdown: medians of the rounds, with the least and the most, how the model compares with platter's
// figure (by wall time, and by the time that the drive was at work, which a busy machine does not lengthen), and platter's with
// fio's, round by round. What is off by more than a fifth is marked.
func Table(w io.Writer, rows []Row) {
	modelled := len(rows) > 0 && rows[0].Model.Ops > 0
	head := []string{"cell", "platter bench disk", "fio", "platter : fio"}
	if modelled {
		head = []string{"cell", "model (modelled)", "lab, platter", "lab, fio", "model : platter", "platter : fio",
			"drive's time for one: model, platter, fio (at work)", "model : platter, drive's time"}
	}
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, r := range rows {
		p, f := Median(r.Platter), Median(r.Fio)
		row := []string{fmt.Sprintf("%s: %s", r.Cell.Group, r.Cell.Name), one(r.Model), several(r.Platter), several(r.Fio),
			mark(ratio(r.Model.Rate(), p.Rate())), pairs(r), strings.Join([]string{work(r.Model), work(p), work(f)}, ", "),
			mark(ratio(p.BusyEach(), r.Model.BusyEach()))} // less time is more speed
		if !modelled {
			row = []string{row[0], row[2], row[3], row[5]}
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}

// pairs is the ratio of what was measured one behind the other: the middle one, and the least and the most.
func pairs(r Row) string {
	var ratios []float64
	for i := range r.Platter {
		ratios = append(ratios, ratio(r.Platter[i].Rate(), r.Fio[i].Rate()))
	}
	slices.Sort(ratios)
	s := mark(ratios[len(ratios)/2])
	if len(ratios) > 1 {
		s += fmt.Sprintf(" (%.2f–%.2f)", ratios[0], ratios[len(ratios)-1])
	}
	return s
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

// work is how long the drive was at work for an operation, and in which part of all the time it was.
func work(f Figure) string {
	return fmt.Sprintf("%.2g ms (%.0f%%)", 1e3*f.BusyEach(), 100*ratio(f.Busy, f.Seconds))
}

// mark is a ratio, with a star where it is more than a fifth off.
func mark(v float64) string {
	s := fmt.Sprintf("%.2f", v)
	if v > fifth || v < 1/fifth {
		s += " *"
	}
	return s
}
