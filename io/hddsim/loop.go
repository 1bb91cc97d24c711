package hddsim

import "time"

// Loop keeps depth requests at a device until count are done: next makes the i-th, without its Done. It returns
// how long that took, and when each was done after its submission, in the order of completion. Everything else that the
// machine has to do goes on meanwhile.
func Loop(m *Machine, d Device, depth, count int, next func(i int) Request) (time.Duration, []time.Duration) {
	start, made, latency := m.now, 0, make([]time.Duration, 0, count)
	var submit func()
	submit = func() {
		if made == count {
			return
		}
		r, at := next(made), m.now
		made++
		r.Done = func() {
			latency = append(latency, m.now-at)
			submit()
		}
		d.Submit(&r)
	}
	for range min(depth, count) {
		submit()
	}
	for len(latency) < count && m.Step() {
	}
	return m.now - start, latency
}
