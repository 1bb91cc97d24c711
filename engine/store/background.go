package store

import (
	"runtime"
	"sync"
)

// background runs short work, such as the sync of a sealed segment, on a few goroutines that live only while there is
// some. The zero value is ready.
type background struct {
	mu      sync.Mutex
	queue   []func()
	workers int
	idle    sync.WaitGroup
}

// backgroundWorkers bounds the syncs that are under way: a device gains little from more.
const backgroundWorkers = 8

// run queues f and returns.
func (b *background) run(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, f)
	if b.workers < backgroundWorkers {
		b.workers++
		b.idle.Add(1)
		go b.work()
	}
}

func (b *background) work() {
	defer b.idle.Done()
	for {
		b.mu.Lock()
		if len(b.queue) == 0 {
			b.workers--
			b.mu.Unlock()
			return
		}
		f := b.queue[0]
		b.queue = b.queue[1:]
		b.mu.Unlock()
		f()
	}
}

// wait returns once all that was queued is done.
func (b *background) wait() { b.idle.Wait() }

// inParallel calls fn for each item, a bounded number at a time.
func inParallel[T any](items []T, fn func(T)) {
	var wg sync.WaitGroup
	work := make(chan T)
	for range min(len(items), max(backgroundWorkers, 2*runtime.NumCPU())) {
		wg.Go(func() {
			for it := range work {
				fn(it)
			}
		})
	}
	for _, it := range items {
		work <- it
	}
	close(work)
	wg.Wait()
}
