package keyed

import (
	"sync"
	"testing"
)

func TestOneAtATimeForAKey(t *testing.T) {
	var l Locks[int]
	var counts [3]int // unguarded but for the locks: the race detector looks on
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			for range 200 {
				unlock := l.Lock(i % len(counts))
				counts[i%len(counts)]++
				unlock()
			}
		})
	}
	wg.Wait()
	if counts != [3]int{2000, 2000, 2000} {
		t.Errorf("counted %v", counts)
	}
	if len(l.locks) != 0 {
		t.Errorf("%d locks are left", len(l.locks))
	}
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	var l Locks[string]
	hung := l.Lock("hung")
	for i := range 1000 {
		l.Lock(string(rune('a' + i)))()
	}
	hung()
}
