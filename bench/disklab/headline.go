package disklab

import "fmt"

// headline is one answer at the top of the page.
type headline struct{ Label, Value, Note string }

// headlines are the answers that a reader came for, where there are figures for them.
func (r *Result) headlines() (out []headline) {
	add := func(label, value, format string, args ...any) {
		out = append(out, headline{label + r.word(), value, fmt.Sprintf(format, args...)})
	}
	if one, seq := r.randomRead(), r.orderRead(); one != nil && seq != nil {
		k, _ := r.behaves(one)
		add("It behaves like", kindNames[k], "%s reads of 4 KiB a second, one at a time", count(one.OpsPerSec))
		add("In order against at random", count(seq.BytesPerSec/one.BytesPerSec)+" : 1", "reads: %s in order, %s in pieces of 4 KiB at random",
			rate(seq.BytesPerSec), rate(one.BytesPerSec))
	}
	switch n, one, many, next := r.carries(); {
	case n > 0 && next == nil:
		add("Partitions it carries", commas(int64(n))+" or more", "so many growing files write %s, one alone %s", rate(many), rate(one))
	case n > 0:
		add("Partitions it carries", commas(int64(n)), "so many growing files write %s, one alone %s; %s of them %s", rate(many), rate(one),
			commas(int64(next.Files)), rate(next.BytesPerSec))
	case one > 0 && next != nil:
		add("Partitions it carries", "few", "one growing file writes %s, %d write %s", rate(one), next.Files, rate(next.BytesPerSec))
	}
	if c := r.smallSync(); c != nil {
		add("A sync costs", span(c.each()), "so a partition takes %s appends a second, if each is synced", count(c.OpsPerSec))
	}
	if len(r.Advice) > 0 {
		switch n := len(r.toSet()); n {
		case 0:
			add("To set", "nothing", "Platter does what suits this disk by itself")
		case 1:
			add("To set", "1 setting", "%s", r.toSet()[0].Setting)
		default:
			add("To set", fmt.Sprintf("%d settings", n), "they stand below, with the reasons")
		}
	}
	return out
}

// toSet is the advice that asks for something.
func (r *Result) toSet() (out []Advice) {
	for _, a := range r.Advice {
		if !a.Same && !a.Optional {
			out = append(out, a)
		}
	}
	return out
}
