package hddsim

import (
	"container/heap"
	"time"

	"platter/io/invariant"
)

// Machine is virtual time: events in the order of their times, then of their making. The zero value stands at 0.
type Machine struct {
	now    time.Duration
	events events
	made   uint64
}

// Now is where time stands.
func (m *Machine) Now() time.Duration { return m.now }

// At has f run at t, or now when t is past.
func (m *Machine) At(t time.Duration, f func()) {
	m.made++
	heap.Push(&m.events, event{max(t, m.now), m.made, f})
}

// After has f run once d has passed.
func (m *Machine) After(d time.Duration, f func()) { m.At(m.now+d, f) }

// Submit gives a request to a device at t.
func (m *Machine) Submit(d Device, r *Request, t time.Duration) { m.At(t, func() { d.Submit(r) }) }

// Next is when the next event falls due; ok is false when none is left.
func (m *Machine) Next() (t time.Duration, ok bool) {
	if len(m.events) == 0 {
		return 0, false
	}
	return m.events[0].at, true
}

// Step moves to the next event and runs it; false when none is left.
func (m *Machine) Step() bool {
	if len(m.events) == 0 {
		return false
	}
	e := heap.Pop(&m.events).(event)
	invariant.Check(e.at >= m.now, "event at %v, and it is %v already", e.at, m.now)
	m.now = e.at
	e.run()
	return true
}

// AdvanceTo runs what falls due up to t, and stands at t then. A t that is past runs what is due now.
func (m *Machine) AdvanceTo(t time.Duration) {
	for len(m.events) > 0 && m.events[0].at <= t {
		m.Step()
	}
	m.now = max(m.now, t)
}

// Run steps until nothing is left.
func (m *Machine) Run() {
	for m.Step() {
	}
}

type event struct {
	at   time.Duration
	made uint64
	run  func()
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].made < h[j].made
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}
