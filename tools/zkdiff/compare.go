package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// difference is a script on which two servers disagree.
type difference struct {
	seed         uint64
	steps        []Step
	ours, theirs []string
}

func (d *difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d (go run ./tools/zkdiff run -from %d -n 1), shrunk to:\n", d.seed, d.seed)
	for i, s := range d.steps {
		text, _ := json.Marshal(s)
		fmt.Fprintf(&b, "  %d %s\n", i, text)
	}
	fmt.Fprintf(&b, "-theirs +ours\n%s", cmp.Diff(d.theirs, d.ours))
	return b.String()
}

// pair is the two servers.
type pair struct{ ours, theirs *target }

// play runs a script on both, at the same time.
func (p *pair) play(steps []Step) (ours, theirs []string, err error) {
	done := make(chan error, 1)
	go func() {
		var err error
		ours, err = p.ours.play(steps)
		if err != nil {
			err = fmt.Errorf("ours: %w", err)
		}
		done <- err
	}()
	if theirs, err = p.theirs.play(steps); err != nil {
		err = fmt.Errorf("theirs: %w", err)
	}
	if e := <-done; e != nil {
		err = e
	}
	return ours, theirs, err
}

// check runs a seed's script. A disagreement counts when it comes again twice: what a busy machine does to timeouts
// does not. It is returned in its shortest form.
func (p *pair) check(seed uint64) (*difference, error) {
	steps := generate(seed)
	const times = 3
	for range times {
		ours, theirs, err := p.play(steps)
		if err == nil && slices.Equal(ours, theirs) {
			return nil, nil
		}
		if err != nil && !p.alive() {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	steps = shrink(steps, func(s []Step) bool {
		ours, theirs, err := p.play(s)
		return err != nil || !slices.Equal(ours, theirs)
	})
	ours, theirs, err := p.play(steps)
	if err != nil {
		ours = append(ours, err.Error())
	}
	return &difference{seed, steps, ours, theirs}, nil
}

func (p *pair) alive() bool {
	for _, t := range []*target{p.ours, p.theirs} {
		fresh, err := newTarget(t.addr, t.shortMs, t.longMs)
		if err != nil {
			return false
		}
		fresh.close()
	}
	return true
}

// shrinkRunsMax bounds how often a script is tried anew.
const shrinkRunsMax = 400

// shrink drops steps, then requests, then operations of multis, for as long as bad stays true.
func shrink(steps []Step, bad func([]Step) bool) []Step {
	runs := 0
	try := func(s []Step) bool {
		runs++
		return runs <= shrinkRunsMax && bad(s)
	}
	for size := len(steps) / 2; size > 0; size /= 2 {
		steps = dropRuns(steps, size, try)
	}
	for i := range steps {
		with := func(reqs []Request) []Step {
			s := slices.Clone(steps)
			s[i].Reqs = reqs
			return s
		}
		steps[i].Reqs = dropRuns(steps[i].Reqs, 1, func(reqs []Request) bool { return try(with(reqs)) })
		for k := range steps[i].Reqs {
			steps[i].Reqs[k].Ops = dropRuns(steps[i].Reqs[k].Ops, 1, func(ops []Request) bool {
				reqs := slices.Clone(steps[i].Reqs)
				reqs[k].Ops = ops
				return try(with(reqs))
			})
		}
	}
	return dropRuns(steps, 1, try)
}

// dropRuns drops pieces of the given size, from the end to the start, where what is left is still bad.
func dropRuns[T any](v []T, size int, bad func([]T) bool) []T {
	for at := len(v) - size; at >= 0; at -= size {
		if at+size > len(v) {
			continue
		}
		if left := slices.Delete(slices.Clone(v), at, at+size); bad(left) {
			v = left
		}
	}
	return v
}
