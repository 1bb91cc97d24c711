package clock

import (
	"container/heap"
	"sync"
	"time"
)

// Virtual is a clock that stands still until Advance.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	timers timers
	made   int64
}

// NewVirtual returns a clock that stands at start.
func NewVirtual(start time.Time) *Virtual { return &Virtual{now: start} }

// Now is where the clock stands.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// NowMs is Now in Unix milliseconds.
func (v *Virtual) NowMs() int64 { return v.Now().UnixMilli() }

// After delivers once the clock has passed d; at once when d is not above zero.
func (v *Virtual) After(d time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	v.start(d, func(now time.Time) { c <- now })
	return c
}

// AfterFunc runs f on its own goroutine once the clock has passed d. Advance waits until f returns, so
// f must not wait for the clock.
func (v *Virtual) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	t := v.start(d, func(time.Time) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	})
	return func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		if t.index < 0 {
			return false
		}
		heap.Remove(&v.timers, t.index)
		return true
	}
}

func (v *Virtual) start(d time.Duration, fire func(now time.Time)) *timer {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.made++
	t := &timer{at: v.now.Add(max(d, 0)), order: v.made, fire: fire}
	heap.Push(&v.timers, t)
	if d <= 0 {
		heap.Remove(&v.timers, t.index)
		go fire(v.now)
	}
	return t
}

// Advance moves the clock by d. Timers fire one after the other, in the order of their times, then of
// their making; each sees the clock at its own time, and timers that they start in turn fire too when
// they fall due. One goroutine at a time may advance.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	end := v.now.Add(d)
	for len(v.timers) > 0 && !v.timers[0].at.After(end) {
		t := heap.Pop(&v.timers).(*timer)
		v.now = t.at
		v.mu.Unlock()
		t.fire(t.at)
		v.mu.Lock()
	}
	v.now = end
	v.mu.Unlock()
}

// Waiting is the number of timers that have not fired.
func (v *Virtual) Waiting() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.timers)
}

// Next is when the next timer fires; ok is false when there is none.
func (v *Virtual) Next() (at time.Time, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.timers) == 0 {
		return time.Time{}, false
	}
	return v.timers[0].at, true
}

type timer struct {
	at    time.Time
	order int64
	fire  func(now time.Time)
	index int // in the heap; -1 when it has left
}

// timers is a heap, the next to fire first.
type timers []*timer

func (h timers) Len() int { return len(h) }
func (h timers) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timers) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	t.index = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
