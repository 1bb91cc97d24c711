package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"platter/bench/stats"
	"platter/tools/zkwire"
)

// crowd is many sessions that watch one node.
type crowd struct {
	node  string
	ctl   *zkwire.Client
	conns []*zkwire.Client
	hits  chan time.Time
	round int
}

// atOnce bounds how many sessions connect at the same time.
const atOnce = 32

func newCrowd(addr string, n int) (*crowd, error) {
	x := &crowd{node: fmt.Sprintf("/zkfan-%d-%d", time.Now().UnixMilli(), beds.Add(1)), conns: make([]*zkwire.Client, n), hits: make(chan time.Time, n)}
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
			c, err := open(addr)
			if err != nil {
				failed[i] = err
				return
			}
			c.OnEvent = func(e zkwire.Event) { x.hits <- e.At }
			x.conns[i] = c
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

// measure arms all watches, changes the node, and waits for all events.
func (x *crowd) measure() (told, error) {
	var armed sync.WaitGroup
	for _, c := range x.conns {
		armed.Add(1)
		c.Queue(zkwire.OpGetData, zkwire.PathWatch(x.node, true), func(zkwire.Reply) { armed.Done() })
		c.Flush()
	}
	armed.Wait()
	time.Sleep(50 * time.Millisecond) // both sides are quiet again
	x.round++
	began := time.Now()
	r, err := x.ctl.Do(zkwire.OpSetData, zkwire.Set(x.node, fmt.Append(nil, x.round), -1))
	if err != nil {
		return told{}, err
	}
	took := make([]time.Duration, 0, len(x.conns))
	for range x.conns {
		select {
		case at := <-x.hits:
			took = append(took, at.Sub(began))
		case <-time.After(60 * time.Second):
			return told{}, fmt.Errorf("only %d of %d watchers were told", len(took), len(x.conns))
		}
	}
	slices.Sort(took)
	return told{took[0], quantile(took, .5), took[len(took)-1], r.At.Sub(began)}, nil
}

func (x *crowd) close() {
	for _, c := range x.conns {
		c.NC.Close()
	}
	_, _ = x.ctl.Do(zkwire.OpDelete, zkwire.PathInt(x.node, -1))
	x.ctl.End()
}

func fanout(o *options) error {
	x, err := newCrowd(o.addr, o.watchers)
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
