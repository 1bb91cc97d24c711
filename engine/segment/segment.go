// Package segment is one segment of a partition: the .log file with its offset and time indexes.
package segment

import (
	"platter/engine/batch"
	"platter/io/disk"
)

// OffsetEntry is one entry of an .index file: the last offset of the batch at Pos.
type OffsetEntry struct {
	Offset int64 // absolute
	Pos    int64
}

// TimeEntry is one entry of a .timeindex file: up to the batch that ends with Offset, no record is
// newer than TimestampMs.
type TimeEntry struct {
	TimestampMs int64
	Offset      int64 // absolute
}

// Files are one segment's files in a directory, by what is there.
type Files struct {
	Base                                 int64
	LogBytes, IndexBytes, TimeIndexBytes int64 // -1: missing
	TxnIndexBytes, SnapshotBytes         int64 // -1: missing
}

// List finds the segments in dir, by base offset. Files that belong to no segment are left out.
func List(fs disk.FS, dir string) ([]Files, error) { panic("stub") }

// LogName, IndexName, TimeIndexName, TxnIndexName, SnapshotName are file names for an offset.
func LogName(base int64) string        { panic("stub") }
func IndexName(base int64) string      { panic("stub") }
func TimeIndexName(base int64) string  { panic("stub") }
func TxnIndexName(base int64) string   { panic("stub") }
func SnapshotName(offset int64) string { panic("stub") }

// ReaderAt is what scans read from: a disk.File, or an os.File in tests.
type ReaderAt interface {
	ReadAt(p []byte, pos int64) (int, error)
}

// Scanner walks the batches of a .log file in order, with bounded memory.
//
//	for sc.Next() { use sc.Batch(), sc.Pos() }
//	if err := sc.Err(); err != nil { … }
type Scanner struct{}

// ScanOptions: the zero value reads headers only and takes any whole batch.
type ScanOptions struct {
	CRC           bool  // read whole batches and check their CRC32C
	Whole         bool  // Batch() gives whole batches, not headers alone
	BatchBytesMax int64 // a longer batch is corrupt; 0: 1 GiB
	NextOffset    int64 // batches must start at or above it
}

// NewScanner scans [pos, end) of r.
func NewScanner(r ReaderAt, pos, end int64, o ScanOptions) *Scanner { panic("stub") }

// Next moves to the next batch; false at the end or at the first bad one (see Err).
func (s *Scanner) Next() bool { panic("stub") }

// Batch is the current batch, valid until Next; only its header (batch.HeaderBytes) unless Whole or CRC.
func (s *Scanner) Batch() batch.Batch { panic("stub") }

// Pos is where the current batch starts; SizeBytes its size.
func (s *Scanner) Pos() int64       { panic("stub") }
func (s *Scanner) SizeBytes() int64 { panic("stub") }

// End is the position behind the last good batch.
func (s *Scanner) End() int64 { panic("stub") }

// Err is nil at a clean end, a *CorruptError at a bad batch, or the read's error.
func (s *Scanner) Err() error { panic("stub") }

// CorruptError is a batch or an index entry that is not what it should be.
type CorruptError struct {
	Path  string // "" when unknown
	Pos   int64
	Cause error // torn, bad length, batch.ErrCRC, …
}

func (e *CorruptError) Error() string { panic("stub") }
func (e *CorruptError) Unwrap() error { return e.Cause }

// ReadOffsetIndex calls fn for each used entry of an .index file of size bytes (a zero tail is unused).
// Entries are given as they are, in file order; fn's error stops it. A size that is no multiple of the
// entry is a *CorruptError, after the whole entries.
func ReadOffsetIndex(r ReaderAt, size, base int64, fn func(i int64, e OffsetEntry) error) error {
	panic("stub")
}

// ReadTimeIndex is ReadOffsetIndex for a .timeindex file.
func ReadTimeIndex(r ReaderAt, size, base int64, fn func(i int64, e TimeEntry) error) error {
	panic("stub")
}
