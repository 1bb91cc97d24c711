package commitlog

import (
	"sync"
	"sync/atomic"
	"time"
)

// Backlog bounds what the appends that wait for the logs of one disk hold in memory, so that a disk that hangs does not
// take what the others need. Appends beyond the bound wait before they are queued; once the disk is known to hang they
// are refused (ErrHangs). An append that finds the disk idle is let in whatever its size. nil bounds nothing.
type Backlog struct {
	BytesMax int64
	Hangs    func() bool // whether the disk answers nothing any more; nil: never

	bytes   atomic.Int64
	waiting atomic.Int64

	mu    sync.Mutex
	freed chan struct{} // closed when some get out; nil: nobody waits
}

// backlogLook is how often one who waits asks whether the disk hangs.
const backlogLook = 100 * time.Millisecond

// enter lets n bytes in.
func (b *Backlog) enter(n int64) error {
	if b == nil || b.try(n) {
		return nil
	}
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	for {
		freed := b.next()
		if b.try(n) { // who left before next was called told nobody
			return nil
		}
		if b.Hangs != nil && b.Hangs() {
			return ErrHangs
		}
		look := time.NewTimer(backlogLook)
		select {
		case <-freed:
		case <-look.C:
		}
		look.Stop()
	}
}

func (b *Backlog) try(n int64) bool {
	if all := b.bytes.Add(n); all <= b.BytesMax || all == n {
		return true
	}
	b.bytes.Add(-n)
	return false
}

// next is closed when somebody leaves.
func (b *Backlog) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}

func (b *Backlog) leave(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.bytes.Add(-n)
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}
