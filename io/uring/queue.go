//go:build linux && !portable && !nouring

package uring

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"golang.org/x/sys/unix"
)

// errStopped: the queue was closed before the batch was taken. Nothing of it was done.
var errStopped = errors.New("ring is closed")

// op is one operation of a batch. Its memory, and what ptr points at, belong to the ring until the batch
// is done; the batch, which the ring holds until then, keeps both reachable.
type op struct {
	code  uint8
	flags uint32         // RWF_… of a read or write, IORING_FSYNC_… of a sync
	fd    int32          // pinned by whoever submits
	ptr   unsafe.Pointer // the buffer, or the vector
	len   int            // bytes of the buffer, or entries of the vector
	pos   int64
	done  int // bytes
	errno syscall.Errno
}

// batch is what one goroutine hands over and waits for.
type batch struct {
	ops  []op
	next int // the first that was not submitted
	left int // not done
	done chan struct{}
	link *batch
}

var batches = sync.Pool{New: func() any { return &batch{done: make(chan struct{}, 1)} }}

// lineup is a list of batches, first in, first out.
type lineup struct{ first, last *batch }

func (l *lineup) add(b *batch) {
	if l.first == nil {
		l.first = b
	} else {
		l.last.link = b
	}
	l.last = b
}

// join moves all of other behind l.
func (l *lineup) join(other *lineup) {
	if other.first != nil {
		if l.first == nil {
			*l = *other
		} else {
			l.last.link, l.last = other.first, other.last
		}
	}
	*other = lineup{}
}

func (l *lineup) pop() {
	b := l.first
	l.first, b.link = b.link, nil
}

// slot is an operation that the kernel has, or will be given again.
type slot struct {
	op    *op
	b     *batch
	async bool // by a thread of the kernel, which may wait: without waiting it could not be done
}

// entryCount is a ring's submission entries, and how many operations it has under way at most.
const entryCount = 128

// wakeData marks the completion of the read that wakes the ring; all others carry the index of their slot.
const wakeData = math.MaxUint64

// state is what the ring's thread does, as those see it who hand something over.
type state int

const (
	running state = iota
	parked        // waits for the wake channel: nothing is under way
	waiting       // waits in the kernel: wake it by its eventfd
)

// queue is one ring with its thread. Goroutines hand batches over, the thread submits what has gathered,
// many operations a system call, and tells each goroutine when its batch is done.
type queue struct {
	mu      sync.Mutex
	waiting lineup // handed over, not taken by the thread yet
	state   state
	closed  bool

	wake    chan struct{} // ends parked
	eventfd int           // ends waiting
	ended   chan struct{} // closed when the thread has given everything back

	stats *counters

	// The thread's own:
	ring     *ring
	work     lineup // taken; the first is being submitted
	slots    []slot
	free     []uint32 // slots without an operation
	again    []uint32 // slots whose operation goes on
	underway int      // operations that the kernel has
	armed    bool     // the kernel has the read of the eventfd
	counter  *uint64  // what that read fills
}

// start sets a ring up on a thread of its own.
func start(stats *counters) (*queue, error) {
	q := &queue{stats: stats, wake: make(chan struct{}, 1), ended: make(chan struct{}), counter: new(uint64),
		slots: make([]slot, entryCount), free: make([]uint32, 0, entryCount), again: make([]uint32, 0, entryCount)}
	for i := range q.slots {
		q.free = append(q.free, uint32(len(q.slots)-1-i))
	}
	// Blocking, since the ring polls for it; a write to it never blocks, as it is read after every one.
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	q.eventfd = fd
	ready := make(chan error)
	go q.run(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	return q, nil
}

// do hands ops over and waits until all are done: each has done and errno set then.
func (q *queue) do(ops []op) error {
	if len(ops) == 0 {
		return nil
	}
	b := batches.Get().(*batch)
	b.ops, b.next, b.left = ops, 0, len(ops)
	q.stats.batches.Add(1)
	q.stats.ops.Add(uint64(len(ops)))
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		b.ops = nil
		batches.Put(b)
		return errStopped
	}
	q.waiting.add(b)
	was := q.state
	q.state = running // whoever comes next need not wake it again
	q.mu.Unlock()
	q.rouse(was)
	<-b.done
	b.ops = nil
	batches.Put(b)
	return nil
}

// rouse ends what the thread waits in.
func (q *queue) rouse(was state) {
	switch was {
	case parked:
		q.wake <- struct{}{}
	case waiting:
		one := [8]byte{0: 1, 7: 1} // not zero in either byte order
		for {
			if _, err := unix.Write(q.eventfd, one[:]); err != unix.EINTR {
				return
			}
		}
	}
}

// close lets nothing in any more, waits until what was handed over is done, and gives the ring back.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	was := q.state
	q.state = running
	q.mu.Unlock()
	q.rouse(was)
	<-q.ended
}

// run is the thread. It is never unlocked, so the thread ends with it, and the kernel's workers with that.
func (q *queue) run(ready chan<- error) {
	runtime.LockOSThread()
	r, err := setUp(entryCount)
	if err == nil {
		if err = r.tryOut(); err != nil {
			r.close()
		}
	}
	if err != nil {
		unix.Close(q.eventfd)
		ready <- err
		return
	}
	q.ring = r
	ready <- nil
	for q.step() {
	}
	r.close()
	unix.Close(q.eventfd)
	close(q.ended)
}

// step takes what was handed over, submits what there is room for, and takes what is done; with nothing
// to submit it waits. false: closed, and all is done.
func (q *queue) step() bool {
	idle := q.underway == 0 && q.work.first == nil
	q.mu.Lock()
	q.work.join(&q.waiting)
	switch {
	case q.work.first != nil || len(q.again) > 0:
		q.mu.Unlock()
		q.submit(0)
	case q.closed && idle:
		q.mu.Unlock()
		return q.disarm()
	case idle:
		q.state = parked
		q.mu.Unlock()
		<-q.wake
	default:
		q.state = waiting
		q.mu.Unlock()
		q.arm()
		q.submit(1)
		q.mu.Lock()
		q.state = running
		q.mu.Unlock()
	}
	return true
}

// chunkBytes is how much is read into at most before the kernel is entered: the disk then begins with the
// first reads of a batch while the others are still being submitted. 64 cold reads of 64 KiB took 0.72 of
// the goroutines' time so, and 0.82 all in one call.
const chunkBytes = 256 << 10

// submit fills entries from what is to go on, then from the batches in their order, and enters the kernel.
// It waits for a completion where there is no room for more.
func (q *queue) submit(wait uint32) {
	for len(q.again) > 0 && q.give(q.again[len(q.again)-1]) {
		q.again = q.again[:len(q.again)-1]
	}
	for bytes := 0; len(q.free) > 0 && q.work.first != nil && bytes < chunkBytes; {
		b := q.work.first
		i := q.free[len(q.free)-1]
		o := &b.ops[b.next]
		q.slots[i] = slot{op: o, b: b}
		if !q.give(i) {
			break
		}
		q.free = q.free[:len(q.free)-1]
		if o.code == sys.IORING_OP_READ {
			bytes += o.len
		}
		if b.next++; b.next == len(b.ops) {
			q.work.pop()
		}
	}
	if len(q.free) == 0 {
		wait = 1
	}
	q.stats.enters.Add(1)
	if err := q.ring.enter(wait); err != nil {
		panic("io_uring_enter: " + err.Error()) // a bug of ours: there is nothing that an I/O could cause
	}
	if taken := q.ring.take(q.done); taken == 0 && q.ring.unsent() > 0 && q.underway == int(q.ring.unsent()) {
		// The kernel had no memory for a single entry, and there is nothing to wait for.
		time.Sleep(time.Millisecond)
	}
}

// give fills a submission entry from a slot; false when the queue is full.
func (q *queue) give(i uint32) bool {
	e := q.ring.next()
	if e == nil {
		return false
	}
	o := q.slots[i].op
	switch o.code {
	case sys.IORING_OP_READ:
		e.PrepOperation(o.code, o.fd, uint64(uintptr(o.ptr))+uint64(o.done), uint32(min(o.len-o.done, readBytesMax)), uint64(o.pos)+uint64(o.done))
	default:
		e.PrepOperation(o.code, o.fd, uint64(uintptr(o.ptr)), uint32(o.len), uint64(o.pos))
	}
	if q.slots[i].async {
		e.SetFlags(sys.IOSQE_FLAGS_ASYNC)
	}
	e.SetOpFlags(o.flags)
	e.SetUserData(uint64(i))
	q.underway++
	return true
}

// readBytesMax is what one read may ask for: the kernel does no more in one either (MAX_RW_COUNT).
const readBytesMax = 1 << 30

// done takes one completion: the operation is done, or goes on where it stopped.
func (q *queue) done(userData uint64, result int32) {
	if userData == wakeData {
		q.armed = false
		return
	}
	q.underway--
	i := uint32(userData)
	s := &q.slots[i]
	o := s.op
	switch {
	case result == -int32(unix.EINTR) || result == -int32(unix.EAGAIN):
		s.async = result == -int32(unix.EAGAIN)
		q.again = append(q.again, i)
		return
	case result < 0:
		o.errno = syscall.Errno(-result)
	default:
		o.done += int(result)
		if o.code == sys.IORING_OP_READ && result > 0 && o.done < o.len {
			q.again = append(q.again, i)
			return
		}
	}
	b := s.b
	*s = slot{}
	q.free = append(q.free, i)
	if b.left--; b.left == 0 {
		b.done <- struct{}{}
	}
}

// arm has the kernel read the eventfd, so that a write to it ends a wait.
func (q *queue) arm() {
	if q.armed {
		return
	}
	if e := q.ring.next(); e != nil {
		e.PrepOperation(sys.IORING_OP_READ, int32(q.eventfd), uint64(uintptr(unsafe.Pointer(q.counter))), 8, 0)
		e.SetUserData(wakeData)
		q.armed = true
	}
}

// disarm ends the read of the eventfd, so that the kernel has nothing of ours any more.
func (q *queue) disarm() bool {
	if !q.armed {
		return false
	}
	q.rouse(waiting)
	q.submit(1)
	return true
}
