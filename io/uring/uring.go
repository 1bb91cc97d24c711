//go:build linux && !portable && !nouring

// Package uring is the Linux backend that hands sets of operations to the kernel in one go, by io_uring(7):
// batched reads, syncs of a set, and (where asked for) vectored writes. All else is psync's.
//
// # The ring
//
// Each device that has work gets one ring, with a thread of its own, so that a disk that hangs holds up
// itself only. Goroutines hand batches over and wait; the thread submits what has gathered, many
// operations a system call, and wakes each goroutine when its batch is done. A hand-over costs two switches
// of thread however large the batch, so sets go through the ring and single operations do not.
//
//	goroutine     goroutine                 ring thread                       kernel
//	ReadBatch ──┐                           entries ── io_uring_enter ──────▶ reads, syncs
//	            ├─▶ batches, in order ────▶ slots (at most 128 under way)         │
//	Sync ───────┘                           completions ◀──────────────────────────┘
//	   ▲                                        │
//	   └────────── one wake-up a batch ─────────┘
//
// At most as many operations are under way as there are slots, half of what the completion queue holds, so
// it cannot overflow; should it still, the kernel keeps completions (IORING_FEAT_NODROP) and enter fetches
// them. Reads that come back short, and operations that a signal interrupted, go on where they stopped.
//
// # Who owns what
//
// Buffers, vectors and descriptors are the ring's from the hand-over until the batch is done. The batch
// keeps buffers reachable and descriptors pinned until then; nobody can cancel one. No operation allocates.
//
// # Errors
//
// Those of disk. Where the kernel could not begin an operation at all (no thread to be had, a ring that is
// closed), it is done as psync does it, and counted in Stats.
//
// A kernel may forbid io_uring: the sysctl kernel.io_uring_disabled, a seccomp filter, a limit on locked
// memory, or its age (5.7 is the oldest that will do). Check tells.
package uring

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/psync"
)

// Ops is a set of operations that go through the ring.
type Ops uint8

const (
	// ColdReads are batches of reads that leave nothing in the page cache.
	ColdReads Ops = 1 << iota
	// WarmReads are all other batches of reads.
	WarmReads
	// Syncs are syncs of a set of files.
	Syncs
	// Writes are vectored writes to one file.
	Writes
)

// All is every operation that this package has.
const All = ColdReads | WarmReads | Syncs | Writes

// Options are what New is given.
type Options struct {
	// Name is what FS.Name says; empty is "uring".
	Name string
	// Choose tells which operations go through the ring for files of a file system; nil is All.
	Choose func(disk.Caps) Ops
}

// FS implements disk.FS. Safe for concurrent use. Close it, or let it be collected: its rings go with it.
type FS struct {
	*psync.FS
	name    string
	choose  func(disk.Caps) Ops
	devices *devices
}

var _ disk.FS = (*FS)(nil)

// New returns the backend, or why the kernel does not let us (as Check).
func New(o Options) (*FS, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = "uring"
	}
	if o.Choose == nil {
		o.Choose = func(disk.Caps) Ops { return All }
	}
	fs := &FS{FS: psync.New(), name: o.Name, choose: o.Choose, devices: &devices{of: map[uint64]*device{}}}
	runtime.AddCleanup(fs, (*devices).close, fs.devices)
	return fs, nil
}

// Check tries a ring: nil when this kernel lets this process have one and it has the operations that are
// needed, else the reason.
func Check() error {
	q, err := start(new(counters))
	if err != nil {
		return explain(err)
	}
	q.close()
	return nil
}

// explain says what an error of the set-up most likely means.
func explain(err error) error {
	why := ""
	switch {
	case errors.Is(err, unix.EPERM):
		why = "io_uring is forbidden (kernel.io_uring_disabled, or a seccomp filter)"
	case errors.Is(err, unix.ENOSYS):
		why = "the kernel has no io_uring, or a seccomp filter hides it"
	case errors.Is(err, unix.ENOMEM):
		why = "no memory for a ring (on Linux before 5.12 the limit on locked memory, ulimit -l, counts)"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		why = "no file descriptor left for a ring"
	default:
		return err
	}
	return fmt.Errorf("%s: %w", why, err)
}

// Name is "uring", or what Options said.
func (fs *FS) Name() string { return fs.name }

// Caps are psync's; batches of reads are one submission where they go through the ring.
func (fs *FS) Caps(path string) disk.Caps {
	c := fs.FS.Caps(path)
	c.BatchRead = fs.choose(c)&ColdReads != 0
	return c
}

// Ops tells what goes through the ring for files under path.
func (fs *FS) Ops(path string) Ops { return fs.choose(fs.FS.Caps(path)) }

// Close ends the rings. Files stay usable, by plain system calls.
func (fs *FS) Close() error {
	fs.devices.close()
	return nil
}

// Open opens path. A file whose writes do not go through the ring is psync's own.
func (fs *FS) Open(path string, m disk.Mode) (disk.File, error) {
	f, err := fs.FS.Open(path, m)
	if err != nil || m == disk.ReadOnly {
		return f, err
	}
	if d := fs.device(f); d.ops&Writes != 0 {
		return &file{File: f, device: d}, nil
	}
	return f, nil
}

// device is one device, and its ring once there was work.
type device struct {
	ops   Ops
	stats *counters
	keeps atomic.Bool // RWF_DONTCACHE is refused

	mu     sync.Mutex
	queue  *queue
	failed time.Time // when a ring could not be had
	closed bool
}

// devices are all devices of an FS. It knows nothing of the FS, so that the FS can be collected.
type devices struct {
	mu     sync.Mutex
	of     map[uint64]*device
	closed bool
	stats  counters
}

// device finds the device of a file of psync's.
func (fs *FS) device(f disk.File) *device {
	dev, _ := psync.Device(f)
	ds := fs.devices
	ds.mu.Lock()
	d := ds.of[dev]
	ds.mu.Unlock()
	if d != nil {
		return d
	}
	// Asked without the lock: a probe may wait for a slow disk.
	caps := fs.FS.Caps(f.Path())
	fresh := &device{ops: fs.choose(caps), stats: &ds.stats}
	fresh.keeps.Store(!caps.DontCache)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d = ds.of[dev]; d == nil {
		d = fresh
		d.closed = ds.closed
		ds.of[dev] = d
	}
	return d
}

// retryAfter is how long a device that could not have a ring goes without trying again.
const retryAfter = 10 * time.Second

// ring is the device's queue, started when it is first asked for; nil when there is none to be had.
func (d *device) ring() *queue {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queue != nil || d.closed || time.Since(d.failed) < retryAfter {
		return d.queue
	}
	q, err := start(d.stats)
	if err != nil {
		d.failed = time.Now()
		return nil
	}
	d.stats.rings.Add(1)
	d.queue = q
	return q
}

func (ds *devices) close() {
	ds.mu.Lock()
	ds.closed = true
	all := make([]*device, 0, len(ds.of))
	for _, d := range ds.of {
		all = append(all, d)
	}
	ds.mu.Unlock()
	for _, d := range all {
		d.mu.Lock()
		q := d.queue
		d.queue, d.closed = nil, true
		d.mu.Unlock()
		if q != nil {
			q.close()
		}
	}
}
