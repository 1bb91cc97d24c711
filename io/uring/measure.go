//go:build linux && !portable && !nouring

package uring

import (
	"runtime"
	"sync"
	"sync/atomic"

	sys "github.com/iceber/iouring-go/syscall"

	"platter/io/disk"
)

type counters struct{ rings, batches, ops, enters, plain atomic.Uint64 }

// Stats are counts since New.
type Stats struct {
	Rings   uint64 // rings that were started
	Batches uint64 // handed over
	Ops     uint64 // operations in them
	Enters  uint64 // system calls that submitted them and waited
	Plain   uint64 // operations that were to go through a ring, and were done by a plain system call
}

// Stats tells what the rings have done.
func (fs *FS) Stats() Stats {
	c := &fs.devices.stats
	return Stats{c.rings.Load(), c.batches.Load(), c.ops.Load(), c.enters.Load(), c.plain.Load()}
}

// NopCallers is how many goroutines Nops hands over from at once: as a broker's readers do, and each waits
// for its own batch.
const NopCallers = 16

// Nops hands over count batches of size empty operations to the ring of the device under f, a file of this
// backend: what passing through the ring costs. disk.ErrUnsupported where there is no ring.
func (fs *FS) Nops(f disk.File, size, count int) error {
	var q *queue
	if d := fs.deviceOf(f); d != nil {
		q = d.ring()
	}
	if q == nil {
		return disk.Fail("nop", f.Path(), -1, disk.ErrUnsupported)
	}
	var left atomic.Int64
	left.Store(int64(count))
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range min(NopCallers, count) {
		wg.Go(func() {
			for ops := nops(size); left.Add(-1) >= 0; {
				if q.do(ops) != nil {
					failed.Store(true)
					return
				}
			}
		})
	}
	wg.Wait()
	if failed.Load() {
		return disk.Fail("nop", f.Path(), -1, errStopped)
	}
	return nil
}

func nops(size int) []op {
	ops := make([]op, size)
	for i := range ops {
		ops[i] = op{code: sys.IORING_OP_NOP, fd: -1}
	}
	return ops
}

// BareNops is the floor for Nops: the same empty operations on a ring of the caller's own thread, without
// any hand-over.
func BareNops(size, count int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := setUp(entryCount)
	if err != nil {
		return explain(err)
	}
	defer r.close()
	done := 0
	taken := func(uint64, int32) { done++ }
	for range count {
		for left := size; left > 0; {
			filled := 0
			for ; filled < left; filled++ {
				e := r.next()
				if e == nil {
					break
				}
				e.PrepOperation(sys.IORING_OP_NOP, -1, 0, 0, 0)
			}
			for want := done + filled; done < want; {
				if err := r.enter(uint32(want - done)); err != nil {
					return err
				}
				r.take(taken)
			}
			left -= filled
		}
	}
	return nil
}
