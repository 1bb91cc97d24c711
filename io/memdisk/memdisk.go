// Package memdisk is a disk in memory that can lose power.
//
// It keeps what real file systems keep apart: what was written, which every reader sees, and what is
// durable, which a power cut leaves. Crash brings up a state that an ext4 or XFS disk, or a stricter
// reading of POSIX, could be in:
//
//   - A sector (512 bytes) that was written and not synced holds the synced content, the last content,
//     or one it had in between; each sector by itself. Sectors of a hole read as zeros.
//   - The size is the synced one, the last, one it had in between, or a page boundary (4,096 bytes) on
//     the way: writeback updates it page by page. A size may outrun the data: the tail is zeros then.
//   - Truncations happen in their order. One that was lost takes all later growth with it, and never
//     shows bytes that were written after it; one that survived never shows bytes from before it.
//   - A directory entry that was created, renamed or removed, and whose directory was not synced since,
//     is new or old. Changes of one name keep their order, changes of different names do not. A rename
//     is atomic: never both names, never neither. File.Sync does not make the file's entry durable.
//   - What was synced is there.
//
// Kill is the death of the process alone: open files and locks are gone, everything written stays, still
// not durable.
//
// The same operations and the same seed give the same crash, provided that the operations come from one
// goroutine at a time.
package memdisk

import (
	"errors"
	"io/fs"
	"sync"

	"platter/io/clock"
	"platter/io/disk"
)

// ErrCrashed is the cause of every failure after the crash point, and on handles from before a crash.
var ErrCrashed = errors.New("simulated crash")

// Options are the disk's properties. The zero value is an empty disk without a limit.
type Options struct {
	// CapacityBytes bounds the data pages, 4,096 bytes each; 0 is no limit. Beyond it: disk.ErrFull.
	CapacityBytes int64
	// Clock gives the modification times; nil is the real one.
	Clock clock.Clock
}

// FS is one disk. It implements disk.FS, and is safe for concurrent use.
type FS struct {
	mu       sync.Mutex
	clock    clock.Clock
	capacity int64
	used     int64

	root    *node
	pending []*change // directory changes that are not durable, oldest first
	nextID  uint64
	life    int // counts crashes; a handle belongs to one life
	locks   map[*node]bool

	count   int64 // operations so far, see Op
	hook    func(Op) error
	crashAt int64 // 0: never
	dice    uint64
	dead    bool
}

var _ disk.FS = (*FS)(nil)

// New returns an empty disk.
func New(o Options) *FS {
	if o.Clock == nil {
		o.Clock = clock.Real{}
	}
	m := &FS{clock: o.Clock, capacity: o.CapacityBytes, locks: map[*node]bool{}}
	m.root = m.newNode(true)
	return m
}

// Name is "memdisk".
func (m *FS) Name() string { return "memdisk" }

// Caps says that Preallocate has an effect (on the capacity), and that residency is known: everything is.
func (m *FS) Caps(string) disk.Caps {
	return disk.Caps{FileSystem: "memory", Preallocate: true, Resident: true}
}

// SetCapacity changes the limit; 0 is no limit. What is stored stays, even when it is more.
func (m *FS) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

// UsedBytes is the size of all data pages, those of removed files that are still open too.
func (m *FS) UsedBytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// unlimitedBytes is what Space calls the size of a disk without a limit.
const unlimitedBytes = 1 << 50

// Space tells capacity and what is left of it.
func (m *FS) Space(path string) (disk.Space, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return disk.Space{}, disk.Fail("space", path, -1, ErrCrashed)
	}
	if m.walk(path) == nil {
		return disk.Space{}, disk.Fail("space", path, -1, fs.ErrNotExist)
	}
	total := m.capacity
	if total == 0 {
		total = unlimitedBytes
	}
	return disk.Space{TotalBytes: total, FreeBytes: max(0, total-m.used)}, nil
}

// Sync makes all files durable, in the order given.
func (m *FS) Sync(files []disk.File) error { return disk.SyncEach(files, 1) }

// ReadBatch does the reads in the order given.
func (m *FS) ReadBatch(reads []disk.Read, _ bool) { disk.ReadEach(reads, 1) }
