package zkserver

import "sync/atomic"

// stats counts what srvr tells: frames in and out, and how long requests took.
type stats struct {
	received, sent atomic.Int64
	authFailed     atomic.Int64

	answered, sumMs, maxMs atomic.Int64
	waited                 atomic.Int64 // answers that took at least a millisecond
	minMs                  atomic.Int64 // of these
}

// took counts one answered request.
func (s *stats) took(ms int64) {
	s.answered.Add(1)
	if ms <= 0 {
		return
	}
	if s.waited.Add(1) == 1 {
		s.minMs.Store(ms)
	}
	s.sumMs.Add(ms)
	raise(&s.maxMs, ms)
	lower(&s.minMs, ms)
}

// latencyMs gives the shortest, mean and longest time.
func (s *stats) latencyMs() (low int64, mean float64, high int64) {
	n := s.answered.Load()
	if n == 0 {
		return 0, 0, 0
	}
	if s.waited.Load() == n {
		low = s.minMs.Load()
	}
	return low, float64(s.sumMs.Load()) / float64(n), s.maxMs.Load()
}

func raise(a *atomic.Int64, v int64) {
	for old := a.Load(); v > old && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}

func lower(a *atomic.Int64, v int64) {
	for old := a.Load(); v < old && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}
