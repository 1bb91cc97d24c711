package store

import (
	"runtime"
	"sync"
)

// background runs short work, such as the sync of a sealed segment, on a few goroutines that live only while there is
// some. The zero value is ready.
type background struct {
	serial  bool // the work is done by wait, in order: for tests that replay
	mu      sync.Mutex
	queue   []func()
	workers int
	rest    *sync.Cond // signalled when the last worker ends; nil: nobody has waited yet
}

// backgroundWorkers bounds the syncs that are under way: a device gains little from more.
const backgroundWorkers = 8

// run queues f and returns.
func (b *background) run(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, f)
	if b.workers < backgroundWorkers && !b.serial {
		b.workers++
		go b.work()
	}
}

func (b *background) work() {
	for {
		b.mu.Lock()
		if len(b.queue) == 0 {
			b.workers = max(0, b.workers-1)
			if b.rest != nil && b.workers == 0 {
				b.rest.Broadcast()
			}
			b.mu.Unlock()
			return
		}
		f := b.queue[0]
		b.queue = b.queue[1:]
		b.mu.Unlock()
		f()
	}
}

// wait returns once all that was queued is done. More may be queued meanwhile, and after it: the late removal of files
// by a log that is closed, which does nothing any more.
func (b *background) wait() {
	if b.serial {
		b.work()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rest == nil {
		b.rest = sync.NewCond(&b.mu)
	}
	for b.workers > 0 {
		b.rest.Wait()
	}
}

// works is the background work of all directories.
type works []*background

// wait returns once all that was queued is done.
func (w works) wait() {
	for _, b := range w {
		b.wait()
	}
}

// inParallel calls fn for each item, a bounded number at a time; one after the other when serial.
func inParallel[T any](serial bool, items []T, fn func(T)) {
	if serial {
		for _, it := range items {
			fn(it)
		}
		return
	}
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
