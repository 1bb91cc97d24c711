package clock

import (
	"sync"
	"time"

	"platter/io/invariant"
)

// Skewed is another clock seen wrongly: it goes faster or slower, and may jump.
type Skewed struct {
	base Clock
	rate float64

	mu    sync.Mutex
	start time.Time // of base, when it read shown
	shown time.Time
}

// NewSkewed returns a clock that is offset ahead of base and counts rate seconds in each of base's; 1.0
// keeps pace.
func NewSkewed(base Clock, offset time.Duration, rate float64) *Skewed {
	invariant.Check(rate > 0, "clock rate is %v, must be above 0", rate)
	now := base.Now()
	return &Skewed{base: base, rate: rate, start: now, shown: now.Add(offset)}
}

// Now is the wrong time.
func (s *Skewed) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Add(time.Duration(float64(s.base.Now().Sub(s.start)) * s.rate))
}

// NowMs is Now in Unix milliseconds.
func (s *Skewed) NowMs() int64 { return s.Now().UnixMilli() }

// Jump sets the clock forward by d, or back. Timers that run do not notice, as with the system's.
func (s *Skewed) Jump(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = s.shown.Add(d)
}

// After delivers the wrong time once d has passed on this clock.
func (s *Skewed) After(d time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	s.AfterFunc(d, func() { c <- s.Now() })
	return c
}

// AfterFunc runs f once d has passed on this clock.
func (s *Skewed) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return s.base.AfterFunc(time.Duration(float64(d)/s.rate), f)
}
