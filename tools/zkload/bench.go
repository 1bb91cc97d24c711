package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"platter/tools/zkwire"
)

// cell is one measurement: an operation by so many sessions, each with so many requests in flight.
type cell struct {
	Op       string
	Sessions int
	Depth    int
}

// outcome is what a cell gave.
type outcome struct {
	Rate     float64 // operations a second
	P50, P99 time.Duration
	Max      time.Duration
	Errors   int64
	Count    int
}

// bed is the tree under which a server is put to load, and the sessions that do it.
type bed struct {
	addr   string
	root   string
	lane   *lane
	ctl    *zkwire.Client
	data   []byte
	riders []*rider
	made   []int // nodes that each session has created and not deleted
}

const (
	benchChildren  = 100     // of the node that "children" lists
	benchNodesMost = 200_000 // created by one cell
)

var beds atomic.Int64

func newBed(l *lane, addr string, sizeBytes int) (*bed, error) {
	b := &bed{lane: l, addr: addr, root: fmt.Sprintf("/zkload-%d-%d", time.Now().UnixMilli(), beds.Add(1)), data: make([]byte, sizeBytes)}
	for i := range b.data {
		b.data[i] = 'a' + byte(i%26)
	}
	var err error
	if b.ctl, err = open(addr); err != nil {
		return nil, err
	}
	if err := ensure(b.ctl, b.root, nil); err != nil {
		return nil, err
	}
	if err := ensure(b.ctl, b.root+"/kids", nil); err != nil {
		return nil, err
	}
	for i := range benchChildren {
		if err := ensure(b.ctl, fmt.Sprintf("%s/kids/child-%06d", b.root, i), nil); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bed) base(i int) string { return b.root + "/s" + strconv.Itoa(i) }

// sessions makes sure that n sessions are there, each with its node.
func (b *bed) sessions(n int) error {
	for len(b.riders) < n {
		r, err := b.lane.open(b.addr)
		if err != nil {
			return err
		}
		b.riders, b.made = append(b.riders, r), append(b.made, 0)
		if err := ensure(b.ctl, b.base(len(b.riders)-1), b.data); err != nil {
			return err
		}
	}
	return nil
}

// ping keeps the sessions alive while another server is measured.
func (b *bed) ping() error {
	for _, r := range b.riders {
		if err := r.ping(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bed) close() {
	for _, r := range b.riders {
		r.close()
	}
	b.ctl.End()
}

// run measures one cell.
func (b *bed) run(x cell, dur time.Duration) (outcome, error) {
	if err := b.sessions(x.Sessions); err != nil {
		return outcome{}, err
	}
	next := make([]request, x.Sessions)
	for i := range next {
		var err error
		if next[i], err = b.requests(x, i); err != nil {
			return outcome{}, err
		}
	}
	took := make([][]time.Duration, x.Sessions)
	ended := make(chan error, x.Sessions)
	var errs atomic.Int64
	began := time.Now()
	for i, r := range b.riders[:x.Sessions] {
		r.start(ride{next: next[i], depth: x.Depth, until: began.Add(dur), done: func(got *outcomeOf, err error) {
			took[i] = got.took
			errs.Add(got.errors)
			ended <- err
		}})
	}
	for range x.Sessions {
		if err := <-ended; err != nil {
			return outcome{}, fmt.Errorf("%s by %d sessions: %w", x.Op, x.Sessions, err)
		}
	}
	elapsed := time.Since(began)
	lat := slices.Concat(took...)
	slices.Sort(lat)
	return outcome{
		Rate: float64(len(lat)) / elapsed.Seconds(), P50: quantile(lat, .5), P99: quantile(lat, .99), Max: quantile(lat, 1),
		Errors: errs.Load(), Count: len(lat),
	}, nil
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(float64(len(sorted)-1)*q)]
}

// requests returns what makes session i's next request; false ends them.
func (b *bed) requests(x cell, i int) (request, error) {
	base, most := b.base(i), benchNodesMost/x.Sessions
	always := func(op int32, body zkwire.Body) request {
		return func() (int32, zkwire.Body, bool) { return op, body, true }
	}
	switch x.Op {
	case "create":
		n := 0
		return func() (int32, zkwire.Body, bool) {
			if n++; n > most {
				return 0, nil, false
			}
			b.made[i]++
			return zkwire.OpCreate, zkwire.Create(base+"/n"+strconv.Itoa(b.made[i]), b.data, 0), true
		}, nil
	case "delete":
		return func() (int32, zkwire.Body, bool) {
			if b.made[i] == 0 {
				return 0, nil, false
			}
			b.made[i]--
			return zkwire.OpDelete, zkwire.PathInt(base+"/n"+strconv.Itoa(b.made[i]+1), -1), true
		}, nil
	case "get":
		return always(zkwire.OpGetData, zkwire.PathWatch(base, false)), nil
	case "set":
		return always(zkwire.OpSetData, zkwire.Set(base, b.data, -1)), nil
	case "exists":
		return always(zkwire.OpExists, zkwire.PathWatch(base, false)), nil
	case "children":
		return always(zkwire.OpGetChildren2, zkwire.PathWatch(b.root+"/kids", false)), nil
	}
	return nil, fmt.Errorf("unknown operation %q", x.Op)
}

// cells are all that the flags name, deletes last, since they need what was created.
func (o *options) cells() ([]cell, error) {
	sessions, err := ints(o.sessions)
	if err != nil {
		return nil, err
	}
	depths, err := ints(o.depth)
	if err != nil {
		return nil, err
	}
	var out []cell
	for _, n := range sessions {
		for _, d := range depths {
			for _, op := range strings.Split(o.ops, ",") {
				out = append(out, cell{op, n, d})
			}
		}
	}
	return out, nil
}

func bench(o *options) error {
	cells, err := o.cells()
	if err != nil {
		return err
	}
	l, err := newLane()
	if err != nil {
		return err
	}
	defer l.close()
	b, err := newBed(l, o.addr, o.size)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("%-9s %8s %6s %10s %9s %9s %9s %7s\n", "op", "sessions", "depth", "ops/s", "p50 ms", "p99 ms", "max ms", "errors")
	for _, x := range cells {
		r, err := b.run(x, o.dur)
		if err != nil {
			return err
		}
		fmt.Printf("%-9s %8d %6d %10.0f %9.3f %9.3f %9.3f %7d\n", x.Op, x.Sessions, x.Depth, r.Rate, ms(r.P50), ms(r.P99), ms(r.Max), r.Errors)
	}
	return nil
}
