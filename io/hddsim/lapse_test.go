package hddsim

import (
	"os"
	"os/signal"
	"sync"
	"testing"
	"time"
)

// Goroutines that queue for a mutex, one of them asleep with it, still let time pass.
func TestLapse(t *testing.T) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt) // a program that does has a thread in a system call for good
	defer signal.Stop(c)
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
	start, reads := lapse.Now(), 0
	lapse.Run(func() { reads = readersOf(l, d) })
	nearLoop(t, reads, lapse.Now().Sub(start))
}
