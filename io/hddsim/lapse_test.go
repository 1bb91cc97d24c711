package hddsim

import (
	"sync"
	"testing"
	"time"
)

// Goroutines that queue for a mutex, one of them asleep with it, still let time pass.
func TestLapse(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	l := NewLapse(start)
	var mu sync.Mutex
	var course []time.Duration
	l.Run(func() {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 250 {
					mu.Lock()
					<-l.After(time.Millisecond)
					course = append(course, l.Now().Sub(start))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	})
	if len(course) != 1000 || course[999] != time.Second {
		t.Fatalf("%d steps, the last at %v", len(course), course[len(course)-1])
	}
	for i, at := range course {
		if at != time.Duration(i+1)*time.Millisecond {
			t.Fatalf("step %d at %v", i, at)
		}
	}
}

func TestLapseOverADrive(t *testing.T) {
	lapse := NewLapse(time.Unix(1_000_000, 0))
	m := &Machine{}
	d := NewDrive(m, HDD7200(), 1)
	l := NewLive(m, lapse)
	next := randomAt(d, 4096, Read, 1)
	const readers, each = 8, 100
	start := lapse.Now()
	lapse.Run(func() {
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
	})
	took := lapse.Now().Sub(start)
	var alone Machine
	exact, _ := Loop(&alone, NewDrive(&alone, HDD7200(), 1), readers, readers*each, randomAt(d, 4096, Read, 1))
	near(t, "reads a second", perSec(readers*each, took), perSec(readers*each, exact), 0.05)
}
