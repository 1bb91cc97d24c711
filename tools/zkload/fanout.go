package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platter/bench/stats"
	"platter/tools/zkwire"
)

// crowd is many sessions that watch one node.
type crowd struct {
	node   string
	ctl    *zkwire.Client
	riders []*rider
	round  int
}

// heard is what one watcher has seen.
type heard struct {
	at  time.Time
	err error
}

// atOnce bounds how many sessions connect at the same time.
const atOnce = 32

func newCrowd(l *lane, addr string, n int) (*crowd, error) {
	x := &crowd{node: fmt.Sprintf("/zkfan-%d-%d", time.Now().UnixMilli(), beds.Add(1)), riders: make([]*rider, n)}
	var err error
	if x.ctl, err = open(addr); err != nil {
		return nil, err
	}
	if err := ensure(x.ctl, x.node, nil); err != nil {
		return nil, err
	}
	failed := make([]error, n)
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			x.riders[i], failed[i] = l.open(addr)
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return x, nil
}

// told is when, after the set was sent, the first, the middle and the last watcher had heard, and the setter its reply.
type told struct{ First, Middle, Last, Reply time.Duration }

// everyone starts the same ride for all, and gives what each has heard.
func (x *crowd) everyone(r ride, between func() error) ([]heard, error) {
	all := make([]heard, len(x.riders))
	var left atomic.Int64
	left.Store(int64(len(all)))
	ended := make(chan struct{})
	for i, w := range x.riders {
		r.done = func(got *outcomeOf, err error) {
			all[i] = heard{got.event, err}
			if left.Add(-1) == 0 {
				close(ended)
			}
		}
		if r.depth > 0 {
			once := true
			r.next = func() (int32, zkwire.Body, bool) {
				defer func() { once = false }()
				return zkwire.OpGetData, zkwire.PathWatch(x.node, true), once
			}
		}
		w.start(r)
	}
	if err := between(); err != nil {
		return nil, err
	}
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		return nil, fmt.Errorf("%d of %d watchers were not told", left.Load(), len(all))
	}
	for _, h := range all {
		if h.err != nil {
			return nil, h.err
		}
	}
	return all, nil
}

// measure arms all watches, changes the node, and waits for all events.
func (x *crowd) measure() (told, error) {
	if _, err := x.everyone(ride{depth: 1}, func() error { return nil }); err != nil {
		return told{}, err
	}
	x.round++
	var began time.Time
	var r zkwire.Reply
	all, err := x.everyone(ride{events: 1}, func() (err error) {
		time.Sleep(50 * time.Millisecond) // both sides are quiet again
		began = time.Now()
		r, err = x.ctl.Do(zkwire.OpSetData, zkwire.Set(x.node, fmt.Append(nil, x.round), -1))
		return err
	})
	if err != nil {
		return told{}, err
	}
	took := make([]time.Duration, 0, len(all))
	for _, h := range all {
		took = append(took, h.at.Sub(began))
	}
	slices.Sort(took)
	return told{took[0], quantile(took, .5), took[len(took)-1], r.At.Sub(began)}, nil
}

func (x *crowd) close() {
	for _, r := range x.riders {
		r.drop()
	}
	_, _ = x.ctl.Do(zkwire.OpDelete, zkwire.PathInt(x.node, -1))
	x.ctl.End()
}

func fanout(o *options) error {
	l, err := newLane()
	if err != nil {
		return err
	}
	defer l.close()
	x, err := newCrowd(l, o.addr, o.watchers)
	if err != nil {
		return err
	}
	defer x.close()
	var all []told
	for range o.rounds {
		r, err := x.measure()
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	median := func(f func(told) time.Duration) float64 {
		var v []time.Duration
		for _, t := range all {
			v = append(v, f(t))
		}
		return ms(stats.Median(v))
	}
	fmt.Printf("%d watchers, medians of %d rounds, ms from the set: first %.2f, middle %.2f, last %.2f, setter's reply %.2f\n", o.watchers, o.rounds,
		median(func(t told) time.Duration { return t.First }), median(func(t told) time.Duration { return t.Middle }),
		median(func(t told) time.Duration { return t.Last }), median(func(t told) time.Duration { return t.Reply }))
	return nil
}
