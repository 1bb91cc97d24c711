package hddsim

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"platter/io/clock"
)

// In a bubble the real clock is a fake one: goroutines that wait for the disk take the modelled time, exactly.
func TestLiveInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Machine{}
		d := NewDrive(m, HDD7200(), 1)
		l := NewLive(m, clock.Real{})
		start := time.Now()
		next := randomAt(d, 4096, Read, 1)
		var wg sync.WaitGroup
		const readers, each = 8, 100
		for range readers {
			wg.Go(func() {
				for range each {
					l.Call(func(done func()) {
						r := next(0)
						r.Done = done
						d.Submit(&r)
					})
				}
			})
		}
		wg.Wait()
		live := perSec(readers*each, time.Since(start))

		var alone Machine
		took, _ := Loop(&alone, NewDrive(&alone, HDD7200(), 1), readers, readers*each, randomAt(d, 4096, Read, 1))
		near(t, "reads a second", live, perSec(readers*each, took), 0.05)
	})
}
