// Package gate bounds how many threads may be blocked on one disk.
//
// A system call that waits for a disk holds an operating system thread, and a Go process dies at 10,000
// of them. So every call that may touch a disk goes through the gate of its device: at most so many are
// in the kernel at once, and what comes beyond waits as a goroutine, without a thread. A disk that hangs
// then costs a bounded number of threads, and the other disks nothing.
//
// # Two sides
//
// Reads and everything else (writes, syncs, creating, removing) wait in a queue each, first come, first
// served. Neither side may hold more than three quarters of the places, and a place that both wait for
// goes to the two in turn: appends do not starve behind ten thousand readers, nor readers behind appends that the
// kernel holds back.
//
// # What is held, and when
//
// A place is for one system call, or a few in a row. It is never held over a wait for a peer's socket,
// a lock or another gate.
package gate

import (
	"sync"
	"sync/atomic"
	"time"
)

// Side is a kind of call.
type Side int

const (
	// Read waits for bytes or names that are there: read, sendfile, stat, list, open without creating.
	Read Side = iota
	// Write changes or makes durable.
	Write
	sideCount
)

// PlacesDefault is the bound of a device for which none was set.
const PlacesDefault = 64

// Gate is one device's bound. Safe for concurrent use.
type Gate struct {
	name    string
	places  int64
	sideMax int64

	// state is the calls inside, by side, and whether anybody waits: see the masks. Without waiters the
	// gate is one compare-and-swap; whoever finds or leaves a waiter takes mu.
	state atomic.Uint64
	out   atomic.Uint64 // calls that came out; the clock is not asked for each, which would cost more than the gate

	mu      sync.Mutex
	queues  [sideCount]queue
	turn    Side // who gets the next place that both wait for
	waited  int64
	longest time.Duration // the longest wait of one that got in
	outSeen uint64        // out when Stats last looked, and since when it has been that
	since   int64
}

// state: reads inside in the low 24 bits, others in the next 24, then a bit a side that somebody waits.
const (
	countBits = 24
	countMask = 1<<countBits - 1
	waitBit   = uint64(1) << (2 * countBits)
)

func inside(s uint64, side Side) int64 { return int64(s >> (countBits * side) & countMask) }
func one(side Side) uint64             { return 1 << (countBits * side) }
func waits(side Side) uint64           { return waitBit << side }

var start = time.Now()

func now() int64 { return int64(time.Since(start)) }

// New returns a gate of so many places, at least four. name is for the metrics.
func New(name string, places int) *Gate {
	n := int64(min(max(places, 4), countMask))
	return &Gate{name: name, places: n, sideMax: n - n/4}
}

// Name is what New was given.
func (g *Gate) Name() string { return g.name }

// Places is how many calls may be inside.
func (g *Gate) Places() int { return int(g.places) }

// free says whether one more of side may go in.
func (g *Gate) free(s uint64, side Side) bool {
	n := inside(s, side)
	return n < g.sideMax && n+inside(s, 1-side) < g.places
}

// TryEnter takes a place if one is free and nobody of that side waits for it.
func (g *Gate) TryEnter(side Side) bool {
	for {
		s := g.state.Load()
		if s&waits(side) != 0 || !g.free(s, side) {
			return false
		}
		if g.state.CompareAndSwap(s, s+one(side)) {
			return true
		}
	}
}

// Enter takes a place, and waits for one as long as it takes. Every Enter has its Leave, by the same side.
func (g *Gate) Enter(side Side) {
	if g.TryEnter(side) {
		return
	}
	g.mu.Lock()
	// The bit goes up first: whoever leaves from here on takes mu, and finds us in the queue.
	g.state.Or(waits(side))
	w := waiters.Get().(*waiter)
	w.since = now()
	g.queues[side].push(w)
	g.grant()
	g.mu.Unlock()
	<-w.turn
	waiters.Put(w)
}

// Leave gives a place back.
func (g *Gate) Leave(side Side) {
	g.out.Add(1)
	if g.state.Add(-one(side)) < waitBit {
		return
	}
	g.mu.Lock()
	g.grant()
	g.mu.Unlock()
}

// grant lets in whom there is room for. mu is held.
func (g *Gate) grant() {
	for {
		side := g.turn
		if !g.grantOne(side) {
			if side = 1 - side; !g.grantOne(side) {
				return
			}
		}
		g.turn = 1 - side
	}
}

func (g *Gate) grantOne(side Side) bool {
	q := &g.queues[side]
	if q.first == nil {
		return false
	}
	for {
		s := g.state.Load()
		if !g.free(s, side) {
			return false
		}
		next := s + one(side)
		if q.first.next == nil {
			next &^= waits(side)
		}
		if g.state.CompareAndSwap(s, next) {
			break
		}
	}
	w := q.pop()
	g.waited++
	g.longest = max(g.longest, time.Duration(now()-w.since))
	w.turn <- struct{}{}
	return true
}

// Stats is a gate at one moment.
type Stats struct {
	Name    string
	Places  int
	Inside  int           // calls in the kernel
	Waiting int           // calls that wait for a place
	Waited  int64         // calls that have waited and got in
	Longest time.Duration // the longest wait so far, of those that wait still too
	// Stalled is how long calls have been inside without any of them coming out, counted from the first
	// look that found it so.
	Stalled time.Duration
}

// Stats looks at the gate.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, at := g.state.Load(), now()
	st := Stats{Name: g.name, Places: int(g.places), Waited: g.waited, Longest: g.longest,
		Inside: int(inside(s, Read) + inside(s, Write))}
	for _, q := range g.queues {
		st.Waiting += q.count
		if q.first != nil {
			st.Longest = max(st.Longest, time.Duration(at-q.first.since))
		}
	}
	if out := g.out.Load(); st.Inside == 0 || out != g.outSeen {
		g.outSeen, g.since = out, at
	}
	st.Stalled = time.Duration(at - g.since)
	return st
}

// waiter is one goroutine in a queue.
type waiter struct {
	turn  chan struct{} // one signal: its place was taken for it
	since int64
	next  *waiter
}

var waiters = sync.Pool{New: func() any { return &waiter{turn: make(chan struct{}, 1)} }}

// queue is first in, first out.
type queue struct {
	first, last *waiter
	count       int
}

func (q *queue) push(w *waiter) {
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.count++
}

func (q *queue) pop() *waiter {
	w := q.first
	if q.first = w.next; q.first == nil {
		q.last = nil
	}
	w.next = nil
	q.count--
	return w
}
