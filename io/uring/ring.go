//go:build linux && !portable && !nouring

package uring

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"golang.org/x/sys/unix"
)

// What the library does not name yet (include/uapi/linux/io_uring.h).
const (
	setupSingleIssuer = 1 << 12 // IORING_SETUP_SINGLE_ISSUER, Linux 6.0
	setupDeferTaskrun = 1 << 13 // IORING_SETUP_DEFER_TASKRUN, Linux 6.1

	registerIOWQMaxWorkers = 19 // IORING_REGISTER_IOWQ_MAX_WORKERS, Linux 5.15

	opSupported = 1 // IO_URING_OP_SUPPORTED
)

// workersMax bounds the threads that the kernel may run for one ring: they are threads of this process,
// and a disk that hangs holds as many as it gets.
const workersMax = 32

// neededFeatures: one mapping for both rings, no completion is dropped, reads of an eventfd are polled for
// and not handed to a thread. Linux 5.7 has them all.
const neededFeatures = sys.IORING_FEAT_SINGLE_MMAP | sys.IORING_FEAT_NODROP | sys.IORING_FEAT_FAST_POLL

// neededOps are the operations that this package submits.
var neededOps = []uint8{sys.IORING_OP_NOP, sys.IORING_OP_READ, sys.IORING_OP_WRITEV, sys.IORING_OP_FSYNC}

// setups are the ways to set a ring up, the best first; an older kernel refuses a flag that it does not
// know with EINVAL. With DEFER_TASKRUN completions are prepared when the ring's thread asks for them, not
// by interrupting it.
var setups = []uint32{
	sys.IORING_SETUP_SUBMIT_ALL | setupSingleIssuer | setupDeferTaskrun,
	sys.IORING_SETUP_SUBMIT_ALL | setupSingleIssuer | sys.IORING_SETUP_COOP_TASKRUN,
	sys.IORING_SETUP_SUBMIT_ALL | sys.IORING_SETUP_COOP_TASKRUN,
	sys.IORING_SETUP_SUBMIT_ALL,
	0,
}

type (
	entry      = sys.SubmissionQueueEntry64
	completion = sys.CompletionQueueEvent16
)

// ring is one io_uring, mapped. It belongs to the thread that set it up, from setUp to close.
//
// Both queues are arrays of a power of two with a head and a tail that only grow; an index is masked:
//
//	submissions  we write entries and move the tail, the kernel moves the head as it takes them
//	completions  the kernel writes them and moves the tail, we move the head as we take them
type ring struct {
	fd    int
	flags uint32 // the setup that the kernel took

	rings, entriesMap []byte // the mappings

	sqHead, sqTail, sqFlags *uint32
	sqMask                  uint32
	entries                 []entry
	tail                    uint32 // entries filled, ours
	sent                    uint32 // entries that the kernel has taken

	cqHead, cqTail *uint32
	cqMask         uint32
	completions    []completion
}

// setUp makes a ring with room for count submissions (a power of two) and twice as many completions. The
// caller has locked its goroutine to its thread.
func setUp(count uint32) (*ring, error) { return setUpWith(setups, count) }

func setUpWith(ways []uint32, count uint32) (*ring, error) {
	var params sys.IOURingParams
	fd, err := -1, error(nil)
	for _, flags := range ways {
		params = sys.IOURingParams{Flags: flags}
		if fd, err = sys.IOURingSetup(uint(count), &params); !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("io_uring_setup: %w", bare(err))
	}
	r := &ring{fd: fd, flags: params.Flags}
	if params.Features&neededFeatures != neededFeatures {
		r.close()
		return nil, fmt.Errorf("the kernel's io_uring is too old (features %#x, needed %#x): %w",
			params.Features, neededFeatures, errors.ErrUnsupported)
	}
	if err := r.mapQueues(&params); err != nil {
		r.close()
		return nil, err
	}
	if err := r.boundWorkers(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *ring) mapQueues(p *sys.IOURingParams) (err error) {
	size := max(p.SQOffset.Array+4*p.SQEntries, p.CQOffset.Cqes+p.CQEntries*uint32(unsafe.Sizeof(completion{})))
	const protection, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.rings, err = unix.Mmap(r.fd, int64(sys.IORING_OFF_SQ_RING), int(size), protection, flags); err != nil {
		return fmt.Errorf("mapping the ring: %w", err)
	}
	entryBytes := int(p.SQEntries) * int(unsafe.Sizeof(entry{}))
	if r.entriesMap, err = unix.Mmap(r.fd, int64(sys.IORING_OFF_SQES), entryBytes, protection, flags); err != nil {
		return fmt.Errorf("mapping the ring's entries: %w", err)
	}
	word := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[offset])) }
	r.sqHead, r.sqTail, r.sqFlags = word(p.SQOffset.Head), word(p.SQOffset.Tail), word(p.SQOffset.Flags)
	r.sqMask = *word(p.SQOffset.RingMask)
	r.entries = unsafe.Slice((*entry)(unsafe.Pointer(&r.entriesMap[0])), p.SQEntries)
	r.cqHead, r.cqTail = word(p.CQOffset.Head), word(p.CQOffset.Tail)
	r.cqMask = *word(p.CQOffset.RingMask)
	r.completions = unsafe.Slice((*completion)(unsafe.Pointer(&r.rings[p.CQOffset.Cqes])), p.CQEntries)
	// Entries are taken in the order of their places, so the indirection is set once.
	for i := range p.SQEntries {
		*word(p.SQOffset.Array + 4*i) = i
	}
	return nil
}

// boundWorkers bounds the kernel's threads, those for files and those for all else. Before Linux 5.15 the
// kernel's own bound counts: the ring's entries, or four a processor.
func (r *ring) boundWorkers() error {
	bounds := [2]uint32{workersMax, 1}
	err := sys.IOURingRegister(r.fd, registerIOWQMaxWorkers, unsafe.Pointer(&bounds), 2)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("io_uring_register: %w", bare(err))
	}
	return nil
}

// checkOps asks which operations the kernel has.
func (r *ring) checkOps() error {
	const opsMax = 256
	var probe struct {
		lastOp, count uint8
		_             uint16
		_             [3]uint32
		ops           [opsMax]struct {
			op, _ uint8
			flags uint16
			_     uint32
		}
	}
	if err := sys.IOURingRegister(r.fd, sys.IORING_REGISTER_PROBE, unsafe.Pointer(&probe), opsMax); err != nil {
		return fmt.Errorf("io_uring_register: %w", bare(err))
	}
	for _, op := range neededOps {
		if op > probe.lastOp || probe.ops[op].flags&opSupported == 0 {
			return fmt.Errorf("the kernel's io_uring has no operation %d: %w", op, errors.ErrUnsupported)
		}
	}
	return nil
}

// tries bounds how often tryOut enters the kernel; a signal may end a wait.
const tries = 1000

// tryOut finds out whether the ring works: a filter may allow some of its system calls and not others.
func (r *ring) tryOut() error {
	if err := r.checkOps(); err != nil {
		return err
	}
	r.next().PrepOperation(sys.IORING_OP_NOP, -1, 0, 0, 0)
	for range tries {
		if err := r.enter(1); err != nil {
			return fmt.Errorf("io_uring_enter: %w", err)
		}
		if r.take(func(uint64, int32) {}) > 0 {
			return nil
		}
	}
	return fmt.Errorf("io_uring_enter: an empty operation never completed: %w", unix.ENOMEM)
}

// next returns the next free submission entry, cleared, or nil when the queue is full.
func (r *ring) next() *entry {
	if r.tail-atomic.LoadUint32(r.sqHead) > r.sqMask {
		return nil
	}
	e := &r.entries[r.tail&r.sqMask]
	e.Reset()
	r.tail++
	return e
}

// unsent is how many entries were filled and not taken by the kernel yet.
func (r *ring) unsent() uint32 { return r.tail - r.sent }

// enter hands over what was filled, and waits for at least wait completions. The caller takes completions
// when it returns, and calls again while there are entries that were not taken: an interrupted call, one
// that the kernel had no memory for, and one that found the completion queue overflown are no errors.
func (r *ring) enter(wait uint32) error {
	atomic.StoreUint32(r.sqTail, r.tail)
	n, err := sys.IOURingEnter(r.fd, r.unsent(), wait, sys.IORING_ENTER_FLAGS_GETEVENTS, nil)
	if err == nil {
		r.sent += uint32(n)
		return nil
	}
	switch cause := bare(err); cause {
	case unix.EINTR, unix.EAGAIN, unix.EBUSY, unix.ENOMEM:
		r.sent = atomic.LoadUint32(r.sqHead)
		return nil
	default:
		return cause
	}
}

// overflown reports whether completions wait in the kernel because the queue had no room: enter brings
// them in.
func (r *ring) overflown() bool {
	return atomic.LoadUint32(r.sqFlags)&sys.IORING_SQ_CQ_OVERFLOW != 0
}

// take calls done for every completion that is there, and returns how many there were.
func (r *ring) take(done func(userData uint64, result int32)) int {
	head, tail := *r.cqHead, atomic.LoadUint32(r.cqTail)
	for i := head; i != tail; i++ {
		c := &r.completions[i&r.cqMask]
		userData, result := c.UserData(), c.Result()
		atomic.StoreUint32(r.cqHead, i+1)
		done(userData, result)
	}
	return int(tail - head)
}

// close gives everything back. No operation may be under way.
func (r *ring) close() {
	if r.entriesMap != nil {
		unix.Munmap(r.entriesMap)
	}
	if r.rings != nil {
		unix.Munmap(r.rings)
	}
	unix.Close(r.fd)
	*r = ring{fd: -1}
}

// bare is the error number in what the library returns.
func bare(err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return err
}
