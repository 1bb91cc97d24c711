// Package commitlog is one partition on disk: append, read, truncate, trim, roll, recover.
//
// # What may run at once
//
// A Log is safe for concurrent use. One appender at a time: who finds none at work writes what all others
// have queued. Readers take no lock of the log for longer than a look at a few numbers: they work on an
// immutable list of segments, and pin the files that they give out. A sync runs beside appends.
//
// # Two ends
//
// Written is what is in the page cache: it outlives the process. Durable is what a sync has covered: it
// outlives a power cut. Both are exclusive, as Kafka's offsets are.
//
// # What is on disk, and what a crash may leave of it
//
// Kafka 3.9's files (see package segment for .log, .index and .timeindex, producer for .snapshot, epoch for
// leader-epoch-checkpoint). The .log files alone are the truth. A power cut may leave any part of what was
// not synced, directory entries too; what follows holds it together:
//
//   - At a roll the directory is synced before the next segment is made, so at most the newest one's entry
//     is lost. Where compaction may leave gaps the old segment is synced too: a lost end looks like a gap.
//   - Recovery cuts the log at the first bad batch past the recovery point and drops all behind it. Whatever is
//     cut, by it, by a truncation or by a failed write, is cut durably: it cannot come back later
//     behind other records.
//   - Segments go in order, oldest first when the log is trimmed, newest first when it is truncated,
//     the directory synced between them.
//   - Before a truncation the checkpointed recovery point is lowered and producer snapshots above are gone.
//   - Below the recovery point nothing is ever cut: what is bad there is a BadRange.
//
// # Errors
//
// The errors below, those of package batch for what a client sent, and the disk's. A full disk refuses the
// append, leaves the log as it was, and is over once there is room. Any other failure of the disk, and every
// failed sync, takes the log offline: ErrOffline from then on, and OnIOError once.
package commitlog

import (
	"errors"

	"platter/engine/batch"
	"platter/io/disk"
)

var (
	// ErrOffsetOutOfRange: below the log start offset or above the log end offset.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrClosed: the log was closed or deleted.
	ErrClosed = errors.New("log is closed")
	// ErrHangs: the disk answers nothing, and enough waits for it already. Nothing was written.
	ErrHangs = errors.New("the disk does not answer")
	// ErrOffline: the data directory failed; the log serves nothing until restart.
	ErrOffline = errors.New("data directory is offline")
	// ErrOutOfOrderSequence, ErrInvalidProducerEpoch: idempotence (KIP-98, KIP-360).
	ErrOutOfOrderSequence   = errors.New("out of order sequence number")
	ErrInvalidProducerEpoch = errors.New("producer epoch is fenced")
	// ErrTransactional: transactions are not served yet; fatal to the client.
	ErrTransactional = errors.New("transactional batches are not supported")
	// ErrEmpty: an append without a batch.
	ErrEmpty = errors.New("no batch to append")
	// ErrRecordListTooLarge: one batch is larger than segment.bytes.
	ErrRecordListTooLarge = errors.New("record batch is larger than segment.bytes")
	// ErrUnexpectedOffset: a follower's batch starts below the log end.
	ErrUnexpectedOffset = errors.New("batch offset is below the log end")
	// ErrCorrupt: a read touched a range known to be bad.
	ErrCorrupt = errors.New("stored batch is corrupt")
)

// Origin says who made the batches.
type Origin int

const (
	// Client: offsets are assigned, sequences checked, batches validated.
	Client Origin = iota
	// Follower: offsets and epochs are kept, sequences not checked. A gap is taken for the leader's, so
	// the next Append waits for the outcome of the one before. After an error a part may be written.
	Follower
)

// Append is one request to a partition. The batches are patched in place, and their bytes belong to
// the log until Done is called; exactly once, on any goroutine, never under a lock of the log.
type Append struct {
	Batches     []batch.Batch
	Origin      Origin
	LeaderEpoch int32
	Done        func(Appended)

	result Appended
	bytes  int64
	held   int64 // of the backlog
}

// Appended is the outcome of an Append. Err nil: the batches are written, and synced when
// flush.messages asked for it.
type Appended struct {
	BaseOffset      int64 // of the first batch
	LastOffset      int64 // of the last batch
	LogAppendTimeMs int64 // -1 on CreateTime topics
	LogStartOffset  int64
	Duplicate       bool // a retried batch: the offsets are those of the original
	Err             error
}

// Ends are a log's offsets at one moment.
type Ends struct {
	Start   int64 // log start offset
	Written int64 // log end offset, exclusive
	Durable int64 // synced up to here, exclusive
}

// Read is a set of byte ranges, pinned until Release (called exactly once, on an error free Read).
type Read struct {
	Ranges     []disk.Range
	NextOffset int64 // the offset after the last batch in the ranges; the request's own when empty
	SizeBytes  int64

	pins *pins
}

// TimeMatch answers a time look-up.
type TimeMatch struct {
	Offset      int64
	TimestampMs int64
	LeaderEpoch int32
}

// BadRange is a part of a segment that is not what was written (disk rot below the recovery point).
// It is kept as it is; reads over it fail with ErrCorrupt, the rest stays readable.
type BadRange struct {
	Path       string // of the .log file
	Pos, End   int64  // bytes [Pos, End)
	Offset     int64  // the first offset that is lost
	NextOffset int64  // the first readable offset behind it
	Cause      error
}
