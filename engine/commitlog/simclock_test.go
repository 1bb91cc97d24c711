package commitlog

import (
	"time"

	"platter/io/clock"
)

// simClock is virtual time.
type simClock struct {
	ms     int64
	timers []simTimer
}

type simTimer struct {
	at int64
	f  func()
}

func (c *simClock) Now() time.Time                       { return time.UnixMilli(c.ms) }
func (c *simClock) NowMs() int64                         { return c.ms }
func (c *simClock) After(time.Duration) <-chan time.Time { return nil }
func (c *simClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.timers = append(c.timers, simTimer{c.ms + d.Milliseconds(), f})
	return func() bool { return false }
}

// advance moves time and runs what is due.
func (c *simClock) advance(ms int64) {
	c.ms += ms
	due := c.timers
	c.timers = nil
	for _, t := range due {
		if t.at > c.ms {
			c.timers = append(c.timers, t)
			continue
		}
		t.f()
	}
}

var _ clock.Clock = (*simClock)(nil)
