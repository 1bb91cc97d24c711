//go:build !linux

package rawdisk

import "platter/io/disk"

// File is one open file; there is none on this platform.
type File struct{}

// Open is refused: this platform has no such access, or none that is known here.
func Open(path string) (*File, error) { return nil, failed("open", path, -1, disk.ErrUnsupported) }

// ReadAt reads nothing.
func (*File) ReadAt([]byte, int64) (int, error) { return 0, disk.ErrUnsupported }

// WriteAt writes nothing.
func (*File) WriteAt([]byte, int64) (int, error) { return 0, disk.ErrUnsupported }

// Sync does nothing.
func (*File) Sync() error { return disk.ErrUnsupported }

// Close does nothing.
func (*File) Close() error { return nil }

// Queue keeps many operations under way; there is none on this platform.
type Queue struct{}

// Completion is an operation that is done.
type Completion struct {
	Slot int
	N    int
	Err  error
}

// NewQueue is refused.
func NewQueue(*File, int) (*Queue, error) { return nil, failed("queue", "", -1, disk.ErrUnsupported) }

// Put does nothing.
func (*Queue) Put(int, bool, []byte, int64) {}

// Submit starts nothing.
func (*Queue) Submit() error { return disk.ErrUnsupported }

// Wait returns nothing.
func (*Queue) Wait() ([]Completion, error) { return nil, disk.ErrUnsupported }

// Close does nothing.
func (*Queue) Close() error { return nil }
