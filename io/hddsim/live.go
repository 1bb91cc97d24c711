package hddsim

import (
	"sync"
	"time"

	"platter/io/clock"
)

// Live runs a machine along a clock, for goroutines that wait for what they submit. It owns the machine: everything
// that touches it or what is built on it goes through Do or Call. Safe for concurrent use.
type Live struct {
	clock clock.Clock
	start time.Time

	mu   sync.Mutex
	m    *Machine
	due  time.Duration // of the timer; below 0 when none is set
	stop func() bool
}

// NewLive sets the machine's time 0 to now, if it still stands there.
func NewLive(m *Machine, c clock.Clock) *Live {
	return &Live{clock: c, start: c.Now().Add(-m.Now()), m: m, due: -1}
}

// Do runs f with the machine at the clock's time. f must not wait.
func (l *Live) Do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m.AdvanceTo(l.clock.Now().Sub(l.start))
	f()
	l.arm()
}

// Call is Do, and waits until submit's done was called.
func (l *Live) Call(submit func(done func())) {
	c := make(chan struct{})
	l.Do(func() { submit(func() { close(c) }) })
	<-c
}

// arm sets the timer for the machine's next event.
func (l *Live) arm() {
	next, ok := l.m.Next()
	if !ok || l.due >= 0 && l.due <= next {
		return
	}
	if l.due >= 0 {
		l.stop()
	}
	l.due = next
	l.stop = l.clock.AfterFunc(next-l.clock.Now().Sub(l.start), func() { l.fire(next) })
}

func (l *Live) fire(due time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m.AdvanceTo(l.clock.Now().Sub(l.start))
	if l.due == due {
		l.due = -1
	}
	l.arm()
}
