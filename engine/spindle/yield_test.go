package spindle

import (
	"testing"
	"time"

	"platter/io/clock"
	"platter/io/memdisk"
)

// steps is a clock on which waits are over at once, and counted.
type steps struct {
	clock.Real
	waits  int
	onWait func()
}

func (c *steps) After(time.Duration) <-chan time.Time {
	c.waits++
	if c.onWait != nil {
		c.onWait()
	}
	over := make(chan time.Time, 1)
	over <- time.Time{}
	return over
}

// A gentle run waits while appends are held up, not while they go on, and not for ever.
func TestYield(t *testing.T) {
	c := &steps{}
	sp := newSpindle("disk", Rotational(mib), memdisk.New(memdisk.Options{}), c)
	expect := func(what string, waits int) {
		t.Helper()
		c.waits = 0
		if sp.yield(); c.waits != waits {
			t.Errorf("%s: %d waits, not %d", what, c.waits, waits)
		}
	}
	expect("nobody appends", 0)
	sp.begun.Add(2)
	c.onWait = func() {
		if c.waits == 7 {
			sp.ended.Add(1)
		}
	}
	expect("one append is held up for a while", 7)
	c.onWait = func() { sp.begun.Add(1); sp.ended.Add(1) }
	expect("appends go on", 1)
	c.onWait = nil
	expect("an append that hangs", int(yieldMax/yieldStep))
}
