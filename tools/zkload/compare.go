package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"platter/bench/cputime"
)

// sides are the servers that are measured in turn; those that are not there are nil.
type sides struct {
	ours, theirs, bare *server
}

// run is one cell on one server in one round.
type run struct {
	outcome
	CPU time.Duration // that the server's process used
}

// compare runs everything in rounds: in each, every cell is measured on one server and at once on the other, first
// on the one, in the next round first on the other, so that what else the machine does weighs on both. Ratios are
// taken within a round. Apache's server gets one round to warm up, which does not count.
func compare(o *options) error {
	dir, err := os.MkdirTemp(cmp.Or(o.dir, "."), "zkload")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	launchOurs, err := coordLauncher(o.ours, dir)
	if err != nil {
		return err
	}
	t := &table{title: fmt.Sprintf("%d cores, %s, %d rounds, %v a cell, data in %s; both sync every write", runtime.NumCPU(), runtime.Version(), o.rounds, o.dur, filepath.Dir(dir))}
	l, err := newLane()
	if err != nil {
		return err
	}
	defer l.close()
	if err := compareStarts(o, t, dir, launchOurs); err != nil {
		return err
	}
	var s sides
	if s.ours, _, err = begin(launchOurs, dir); err != nil {
		return err
	}
	defer s.ours.stop()
	if s.bare, _, err = begin(launchBare, dir); err != nil {
		return err
	}
	defer s.bare.stop()
	if s.theirs, _, err = begin(launchReal, dir); err == nil {
		defer s.theirs.stop()
	} else {
		fmt.Fprintf(os.Stderr, "SKIPPED the other side: %v\n", err)
	}
	fresh := s.resident()
	if err := compareCells(o, t, l, s); err != nil {
		return err
	}
	if err := compareFanout(o, t, l, s); err != nil {
		return err
	}
	after := s.resident()
	t.memory("resident memory, fresh", fresh[0], fresh[1], "at most 20 MB")
	t.memory("resident memory, after all this", after[0], after[1], "at most 100 MB")
	return t.print(o.json)
}

// settleTime is how long nothing is asked of the servers before their memory is looked at.
const settleTime = 3 * time.Second

// resident is what the two servers hold at rest.
func (s sides) resident() (bytes [2]int64) {
	time.Sleep(settleTime)
	bytes[0] = residentBytes(s.ours.pid)
	if s.theirs != nil {
		bytes[1] = residentBytes(s.theirs.pid)
	}
	return bytes
}

func compareStarts(o *options, t *table, dir string, launchOurs launcher) error {
	var took [2][]time.Duration
	for range o.rounds {
		for i, launch := range []launcher{launchOurs, launchReal} {
			s, at, err := begin(launch, dir)
			if i == 1 && err != nil {
				continue // it is told of where the load begins
			}
			if err != nil {
				return err
			}
			took[i] = append(took[i], at.Read)
			s.stop()
		}
	}
	t.durations("start to first reply", took[0], took[1], "under 20 ms")
	return nil
}

// defaultCells are those that the acceptance of the coordinator names.
func defaultCells(o *options) ([]cell, error) {
	cells, err := o.cells()
	if err == nil && slices.ContainsFunc(cells, func(c cell) bool { return c.Op == "delete" }) {
		err = errors.New("compare measures no deletes")
	}
	return cells, err
}

func compareCells(o *options, t *table, l *lane, s sides) error {
	cells, err := defaultCells(o)
	if err != nil {
		return err
	}
	beds := map[*server]*bed{}
	for _, x := range []*server{s.ours, s.theirs, s.bare} {
		if x == nil {
			continue
		}
		if beds[x], err = newBed(l, x.addr, o.size); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		defer beds[x].close()
	}
	got := map[*server][][]run{}
	for x := range beds {
		got[x] = make([][]run, len(cells))
	}
	for round := range o.rounds + 1 {
		order := []*server{s.ours, s.theirs}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for i, c := range cells {
			turn := order
			if c.Sessions == 1 && c.Op != "get" {
				turn = append(slices.Clone(order), s.bare)
			}
			for _, x := range turn {
				if x == nil {
					continue
				}
				r, err := measured(beds[x], x, c, o.dur)
				if err != nil {
					return fmt.Errorf("%s: %w", x.name, err)
				}
				if round > 0 {
					got[x][i] = append(got[x][i], r)
				}
			}
			if err := tidy(beds, c); err != nil {
				return err
			}
		}
	}
	for i, c := range cells {
		t.cell(c, got[s.ours][i], at(got[s.theirs], i), at(got[s.bare], i))
	}
	return nil
}

// tidy removes what a cell has created, and keeps all sessions alive.
func tidy(beds map[*server]*bed, c cell) error {
	for x, b := range beds {
		if c.Op == "create" {
			if _, err := b.run(cell{"delete", c.Sessions, tidyDepth}, time.Hour); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
		if err := b.ping(); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}

// tidyDepth is how many deletes each session has in flight.
const tidyDepth = 8

func at(v [][]run, i int) []run {
	if v == nil {
		return nil
	}
	return v[i]
}

func measured(b *bed, s *server, c cell, dur time.Duration) (run, error) {
	before, _ := cputime.Of(s.pid) // nothing where the system does not tell
	out, err := b.run(c, dur)
	after, _ := cputime.Of(s.pid)
	if err == nil && out.Errors > 0 {
		err = fmt.Errorf("%s by %d sessions: %d of %d requests failed", c.Op, c.Sessions, out.Errors, out.Count)
	}
	return run{out, after - before}, err
}

func compareFanout(o *options, t *table, l *lane, s sides) error {
	crowds := map[*server]*crowd{}
	took := map[*server][]time.Duration{}
	order := []*server{s.ours, s.theirs, s.bare}
	for _, x := range order {
		if x == nil {
			continue
		}
		c, err := newCrowd(l, x.addr, o.watchers)
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		defer c.close()
		crowds[x] = c
	}
	for round := range o.rounds + 1 {
		for _, x := range order {
			if x == nil {
				continue
			}
			r, err := crowds[x].measure()
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			if round > 0 {
				took[x] = append(took[x], r.Last)
			}
		}
		slices.Reverse(order)
	}
	t.durations(fmt.Sprintf("the last of %d watchers told", o.watchers), took[s.ours], took[s.theirs], "a third at most")
	t.durations("  beside the bare loop", took[s.ours], took[s.bare], "")
	return nil
}
