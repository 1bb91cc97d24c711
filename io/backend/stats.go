package backend

import "platter/io/disk"

// RingStats count what went through io_uring since the backend was selected.
type RingStats struct {
	Rings   uint64 // rings that were started: one a device with sets of operations
	Batches uint64 // sets that were handed over
	Ops     uint64 // operations in them
	Enters  uint64 // system calls that submitted them, and waited
	Plain   uint64 // operations that were for a ring, and were done by plain system calls since it could not begin them
}

// Rings counts what went through rings; ok is false for a backend that has none.
func Rings(fs disk.FS) (s RingStats, ok bool) { return ringStats(fs) }
