//go:build linux

package rawdisk

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"platter/io/disk"
)

// Queue keeps many operations on one file under way from one goroutine (io_submit(2), io_getevents(2)): a thread for each would
// be measured instead of a fast device. It belongs to one goroutine at a time.
type Queue struct {
	f     *File
	ctx   uintptr
	slots []slot
	ring  []ioEvent
	made  []uintptr // addresses of what is submitted next
	ready []Completion
}

// slot is an operation that may be under way; the kernel looks at cb and at buf until it is done.
type slot struct {
	cb  iocb
	buf []byte
}

// iocb is struct iocb of <linux/aio_abi.h>; the two words after data, which byte order swaps, are 0.
type iocb struct {
	data     uint64
	_        uint64
	opcode   uint16
	_        int16
	fd       uint32
	buf      uint64
	bytes    uint64
	offset   int64
	_        uint64
	_, resfd uint32
}

// ioEvent is struct io_event.
type ioEvent struct {
	data, obj uint64
	res, res2 int64
}

const (
	opRead  = 0 // IOCB_CMD_PREAD
	opWrite = 1 // IOCB_CMD_PWRITE
)

// Completion is an operation that is done.
type Completion struct {
	Slot int
	N    int
	Err  error
}

// NewQueue makes a queue for so many operations at once. disk.ErrUnsupported where the kernel has none for this process.
func NewQueue(f *File, depth int) (*Queue, error) {
	q := &Queue{f: f, slots: make([]slot, depth), ring: make([]ioEvent, depth)}
	if _, _, e := unix.Syscall(unix.SYS_IO_SETUP, uintptr(depth), uintptr(unsafe.Pointer(&q.ctx)), 0); e != 0 {
		return nil, failed("queue", f.f.Name(), -1, disk.ErrUnsupported)
	}
	return q, nil
}

// Put adds an operation in a slot that has none under way. buf is the queue's until its completion; Submit starts it.
func (q *Queue) Put(n int, write bool, buf []byte, pos int64) {
	s := &q.slots[n]
	s.buf = buf
	s.cb = iocb{data: uint64(n), opcode: opRead, fd: uint32(q.f.f.Fd()), buf: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))),
		bytes: uint64(len(buf)), offset: pos}
	if write {
		s.cb.opcode = opWrite
	}
	q.made = append(q.made, uintptr(unsafe.Pointer(&s.cb)))
}

// Submit starts what was put.
func (q *Queue) Submit() error {
	for len(q.made) > 0 {
		n, _, e := unix.Syscall(unix.SYS_IO_SUBMIT, q.ctx, uintptr(len(q.made)), uintptr(unsafe.Pointer(unsafe.SliceData(q.made))))
		switch {
		case e == unix.EINTR:
		case e != 0:
			return failed("submit", q.f.f.Name(), -1, unsupported(e))
		default:
			q.made = append(q.made[:0], q.made[n:]...)
		}
	}
	runtime.KeepAlive(q)
	return nil
}

// Wait returns what is done, one at least. The slice is the queue's, until the next call.
func (q *Queue) Wait() ([]Completion, error) {
	for {
		n, _, e := unix.Syscall6(unix.SYS_IO_GETEVENTS, q.ctx, 1, uintptr(len(q.ring)), uintptr(unsafe.Pointer(unsafe.SliceData(q.ring))), 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return nil, failed("wait", q.f.f.Name(), -1, e)
		}
		q.ready = q.ready[:0]
		for _, ev := range q.ring[:n] {
			s := &q.slots[ev.data]
			c := Completion{Slot: int(ev.data), N: int(ev.res)}
			if ev.res < 0 {
				c.N, c.Err = 0, failed("queue", q.f.f.Name(), s.cb.offset, unsupported(unix.Errno(-ev.res)))
			} else if c.N != len(s.buf) {
				c.Err = failed("queue", q.f.f.Name(), s.cb.offset, disk.ErrShortWrite)
			}
			s.buf = nil
			q.ready = append(q.ready, c)
		}
		return q.ready, nil
	}
}

// Close waits for what is under way, and ends the queue.
func (q *Queue) Close() error {
	_, _, e := unix.Syscall(unix.SYS_IO_DESTROY, q.ctx, 0, 0)
	runtime.KeepAlive(q)
	if e != 0 {
		return failed("close the queue of", q.f.f.Name(), -1, e)
	}
	return nil
}
