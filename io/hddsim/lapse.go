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
// repeatable. One Run at a time in a process.
func (l Lapse) Run(f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	others := []metrics.Sample{
		{Name: "/sched/goroutines/runnable:goroutines"},
		{Name: "/sched/goroutines/not-in-go:goroutines"},
	}
	for {
		runtime.Gosched()
		select {
		case <-done:
			return
		default:
		}
		if metrics.Read(others); others[0].Value.Uint64()+others[1].Value.Uint64() > 0 {
			continue
		}
		if at, ok := l.Next(); ok {
			l.Advance(at.Sub(l.Now()))
		} else {
			time.Sleep(100 * time.Microsecond) // nothing to wait for here: something outside keeps them
		}
	}
}
