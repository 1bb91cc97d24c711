package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	addr  string
	root  string
	ctl   *zkwire.Client
	data  []byte
	conns []*zkwire.Client
	made  []int // nodes that each session has created and not deleted
}

const (
	benchChildren  = 100     // of the node that "children" lists
	benchNodesMost = 200_000 // created by one cell
)

var beds atomic.Int64

func newBed(addr string, sizeBytes int) (*bed, error) {
	b := &bed{addr: addr, root: fmt.Sprintf("/zkload-%d-%d", time.Now().UnixMilli(), beds.Add(1)), data: make([]byte, sizeBytes)}
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
	for len(b.conns) < n {
		c, err := open(b.addr)
		if err != nil {
			return err
		}
		if err := ensure(b.ctl, b.base(len(b.conns)), b.data); err != nil {
			return err
		}
		b.conns, b.made = append(b.conns, c), append(b.made, 0)
	}
	return nil
}

func (b *bed) close() {
	for _, c := range b.conns {
		c.End()
	}
	b.ctl.End()
}

// run measures one cell.
func (b *bed) run(x cell, dur time.Duration) (outcome, error) {
	if err := b.sessions(x.Sessions); err != nil {
		return outcome{}, err
	}
	took := make([][]time.Duration, x.Sessions)
	failed := make([]error, x.Sessions)
	var errs atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for i := range x.Sessions {
		all.Go(func() {
			next, err := b.requests(x, i)
			if err != nil {
				failed[i] = err
				return
			}
			took[i], failed[i] = pump(b.conns[i], x.Depth, began.Add(dur), next, &errs)
		})
	}
	all.Wait()
	elapsed := time.Since(began)
	for _, err := range failed {
		if err != nil {
			return outcome{}, fmt.Errorf("%s by %d sessions: %w", x.Op, x.Sessions, err)
		}
	}
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
func (b *bed) requests(x cell, i int) (func() (int32, zkwire.Body, bool), error) {
	base, most := b.base(i), benchNodesMost/x.Sessions
	always := func(op int32, body zkwire.Body) func() (int32, zkwire.Body, bool) {
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

// pump keeps depth requests in flight until the deadline, or until next says no more.
func pump(c *zkwire.Client, depth int, deadline time.Time, next func() (int32, zkwire.Body, bool), errs *atomic.Int64) ([]time.Duration, error) {
	free := make(chan struct{}, depth)
	var mu sync.Mutex
	took := make([]time.Duration, 0, 1<<14)
	acquire := func() error {
		select {
		case free <- struct{}{}:
			return nil
		default:
		}
		c.Flush()
		select {
		case free <- struct{}{}:
			return nil
		case <-c.Dead:
			return fmt.Errorf("connection lost under load: %w", c.Err)
		}
	}
	for i := 0; i&7 != 0 || time.Now().Before(deadline); i++ {
		op, body, more := next()
		if !more {
			break
		}
		if err := acquire(); err != nil {
			return nil, err
		}
		sent := time.Now()
		c.Queue(op, body, func(r zkwire.Reply) {
			mu.Lock()
			took = append(took, r.At.Sub(sent))
			mu.Unlock()
			if r.Err != 0 {
				errs.Add(1)
			}
			<-free
		})
	}
	c.Flush()
	for range depth {
		if err := acquire(); err != nil {
			return nil, err
		}
	}
	return took, nil
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
	b, err := newBed(o.addr, o.size)
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
