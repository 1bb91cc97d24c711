package clock

import "time"

// elapsing is a clock that counts on its own, whatever it is set to.
type elapsing interface{ Elapsed() time.Duration }

// began is where the machine's monotonic time starts here. It carries the monotonic reading.
var began = time.Now()

// Elapsed is how long a clock has counted since some moment. Unlike the difference of two Nows of a clock of the
// machine, or of two NowMs, it does not jump when the clock is set: for what is a span of time, and no date.
func Elapsed(c Clock) time.Duration {
	if e, ok := c.(elapsing); ok {
		return e.Elapsed()
	}
	return time.Duration(c.Now().UnixNano())
}

// ElapsedMs is Elapsed in milliseconds.
func ElapsedMs(c Clock) int64 { return Elapsed(c).Milliseconds() }

// Elapsed is the machine's monotonic time.
func (Real) Elapsed() time.Duration { return time.Since(began) }

// Elapsed goes at the clock's own pace, and does not see its jumps.
func (s *Skewed) Elapsed() time.Duration { return time.Duration(float64(Elapsed(s.base)) * s.rate) }
