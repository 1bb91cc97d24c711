package hddsim

import (
	"runtime"
	"runtime/metrics"
	"time"

	"platter/io/clock"
)

// Lapse is a virtual clock that moves by itself: to its next timer as soon as every goroutine of the process waits.
// What runs under it uses it as its clock, and waits for nothing else: no sockets, no system calls that block, no
// timers of package time. Goroutines that wait for a mutex count as waiting (unlike in a bubble of
// testing/synctest), so it suits code that holds one over a disk operation.
type Lapse struct{ *clock.Virtual }

// NewLapse stands at start.
func NewLapse(start time.Time) Lapse { return Lapse{clock.NewVirtual(start)} }

// Run calls f on a goroutine of its own, and lets time pass until it has returned. Meanwhile the process has one
// processor (GOMAXPROCS): then nobody else runs while it looks, what it sees is exact, and a run is all but
// repeatable. A thread that sits in a system call for good (the one that waits for signals) counts as asleep, once it
// has been there for settled. One Run at a time in a process.
func (l Lapse) Run(f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	o := newOthers()
	for {
		runtime.Gosched()
		select {
		case <-done:
			return
		default:
		}
		if o.busy() {
			continue
		}
		if at, ok := l.Next(); ok {
			l.Advance(at.Sub(l.Now()))
		} else {
			time.Sleep(nap) // nothing to wait for here: something outside keeps them
		}
	}
}

const (
	// nap is how long to sleep while something outside of virtual time is waited for.
	nap = 100 * time.Microsecond
	// settled is how long threads are in system calls before they are taken to stay.
	settled = 20 * time.Millisecond
)

// others are the goroutines beside the one that looks.
type others struct {
	samples []metrics.Sample
	away    uint64    // that sit in a system call for good
	since   time.Time // when more than these were seen there, and nobody else has run since
}

func newOthers() *others {
	return &others{samples: []metrics.Sample{
		{Name: "/sched/goroutines/runnable:goroutines"},
		{Name: "/sched/goroutines/not-in-go:goroutines"},
	}}
}

// busy: one of them can run, or is in a system call that will end.
func (o *others) busy() bool {
	metrics.Read(o.samples)
	runnable, calls := o.samples[0].Value.Uint64(), o.samples[1].Value.Uint64()
	switch {
	case runnable > 0:
		o.since = time.Time{}
		return true
	case calls <= o.away:
		o.away, o.since = calls, time.Time{}
		return false
	case o.since.IsZero():
		o.since = time.Now()
	case time.Since(o.since) > settled:
		o.away = calls
	}
	time.Sleep(nap)
	return true
}
