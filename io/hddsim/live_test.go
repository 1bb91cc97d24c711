package hddsim

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"platter/io/clock"
)

// readersOf has goroutines read at random from a live drive, and gives how many reads they made.
func readersOf(l *Live, d *Drive) int {
	next := randomAt(d, 4096, Read, 1)
	const readers, each = 8, 100
	var wg sync.WaitGroup
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
	return readers * each
}

// nearLoop wants reads that took so long to be as many a second as the machine alone makes at that depth.
func nearLoop(t *testing.T, reads int, took time.Duration) {
	t.Helper()
	var alone Machine
	d := NewDrive(&alone, HDD7200(), 1)
	exact, _ := Loop(&alone, d, 8, reads, randomAt(d, 4096, Read, 1))
	near(t, "reads a second", perSec(reads, took), perSec(reads, exact), 0.05)
}

// In a bubble the real clock is a fake one: goroutines that wait for the disk take the modelled time, exactly.
func TestLiveInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Machine{}
		d := NewDrive(m, HDD7200(), 1)
		l := NewLive(m, clock.Real{})
		start := time.Now()
		n := readersOf(l, d)
		nearLoop(t, n, time.Since(start))
	})
}
