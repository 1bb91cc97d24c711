// Package commitlog is one partition on disk: append, read, truncate, trim, roll, recover.
//
// One appender at a time; readers take immutable, reference-counted snapshots. The log keeps two ends:
// written (in the page cache) and durable (synced). Offsets are Kafka's: the ends are exclusive.
package commitlog

import (
	"context"
	"errors"

	"platter/engine/batch"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/handles"
)

var (
	// ErrOffsetOutOfRange: below the log start offset or above the log end offset.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrClosed: the log was closed or deleted.
	ErrClosed = errors.New("log is closed")
	// ErrOffline: the data directory failed; the log serves nothing until restart.
	ErrOffline = errors.New("data directory is offline")
	// ErrOutOfOrderSequence, ErrInvalidProducerEpoch, ErrUnknownProducer: idempotence (KIP-98, KIP-360).
	ErrOutOfOrderSequence   = errors.New("out of order sequence number")
	ErrInvalidProducerEpoch = errors.New("producer epoch is fenced")
	ErrUnknownProducer      = errors.New("producer id is unknown")
	// ErrTransactional: transactions are not served yet; fatal to the client.
	ErrTransactional = errors.New("transactional batches are not supported")
	// ErrEmpty: an append without a batch.
	ErrEmpty = errors.New("no batch to append")
	// ErrRecordListTooLarge: one batch is larger than segment.bytes.
	ErrRecordListTooLarge = errors.New("record batch is larger than segment.bytes")
	// ErrCorrupt: a read touched a range known to be bad.
	ErrCorrupt = errors.New("stored batch is corrupt")
)

// Config is a partition's settings, by Kafka's topic setting names. Milliseconds and bytes; -1 is
// "no limit" where Kafka says so. A zero Config is not valid: start from DefaultConfig.
type Config struct {
	SegmentBytes           int64
	SegmentMs              int64
	SegmentJitterMs        int64
	SegmentIndexBytes      int64
	IndexIntervalBytes     int64
	RetentionBytes         int64
	RetentionMs            int64
	DeleteRetention        bool // cleanup.policy contains delete
	Compacted              bool // cleanup.policy contains compact: keys are required
	FileDeleteDelayMs      int64
	FlushMessages          int64
	FlushMs                int64
	MaxMessageBytes        int
	LogAppendTime          bool
	TimestampBeforeMaxMs   int64
	TimestampAfterMaxMs    int64
	Compression            Compression
	Preallocate            bool
	DecompressedBytesMax   int64
	ValidateHeaderOnly     bool
	ProducerIDExpirationMs int64
}

// Compression is compression.type: Producer keeps what came.
type Compression struct {
	Producer bool
	Codec    batch.Codec
	Level    int // 0: the codec's default
}

// DefaultConfig is Kafka 3.9's defaults.
func DefaultConfig() Config { panic("stub") }

// Options is what Open needs. FS, Handles, Clock and Dir are required.
type Options struct {
	FS        disk.FS
	Handles   *handles.Cache
	Clock     clock.Clock
	Dir       string // made when missing
	Topic     string // with Partition: only for messages
	Partition int32
	Config    Config

	// RecoveryPoint and LogStartOffset are as the directory's checkpoints say; 0 when they say nothing.
	RecoveryPoint  int64
	LogStartOffset int64
	// CleanShutdown: the log was closed cleanly; nothing is scanned.
	CleanShutdown bool
	// SameBoot: the machine has not restarted since the log was last written, so the page cache is
	// whole and only the tail behind the last index entry is scanned.
	SameBoot bool

	// Progress, when set, is told of growth: bytes that will be scanned, bytes that have been.
	Progress func(toScan, scanned int64)
	// OnIOError is called once, when the log goes offline. Never under a lock of the log.
	OnIOError func(error)
	// LowerRecoveryPoint must make the checkpointed recovery point at most offset, durably, before it
	// returns: the log is about to be truncated there, and what comes after is not synced. It is called
	// under the log's lock: it must not call the log. nil: the owner keeps no checkpoint.
	LowerRecoveryPoint func(offset int64) error
	// Background runs f soon, on another goroutine (the sync of a sealed segment). nil: go f().
	Background func(f func())
	// Logf, when set, is told what recovery did: cut tails, rebuilt indexes, bad ranges.
	Logf func(format string, args ...any)
}

// Open loads the log in o.Dir, recovering it as the hints in o demand, and creates it when it is not
// there: finish interrupted deletes and swaps, cut the torn tail, clamp leader epochs, drop producer
// snapshots beyond the end and rebuild producer state.
func Open(ctx context.Context, o Options) (*Log, error) { panic("stub") }

// Origin says who made the batches.
type Origin int

const (
	// Client: offsets are assigned, sequences checked, batches validated.
	Client Origin = iota
	// Follower: offsets and epochs are kept, sequences not checked.
	Follower
)

// Append is one request to a partition. The batches are patched in place, and their bytes belong to
// the log until Done is called; exactly once, on any goroutine, never under a lock of the log.
type Append struct {
	Batches     []batch.Batch
	Origin      Origin
	LeaderEpoch int32
	Done        func(Appended)
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
}

// Release unpins the ranges' files.
func (r *Read) Release() { panic("stub") }

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

// Log is one open partition. Safe for concurrent use.
type Log struct{}

// Enqueue validates a's batches on the caller's goroutine, before any lock, and queues it in call
// order. The caller that finds no writer at work becomes the writer: it writes what all others have queued,
// as few vectored writes as the bound allows, then returns. Failures come by Done too.
func (l *Log) Enqueue(a *Append) { panic("stub") }

// Read returns whole batches from the one that contains offset, up to maxBytes, only below limit
// (exclusive offset: high watermark, last stable offset or log end). With atLeastOne the first batch
// comes whatever its size. Offset equal to the log end gives an empty Read; beyond, or below the
// start: ErrOffsetOutOfRange.
func (l *Log) Read(offset int64, maxBytes int64, limit int64, atLeastOne bool) (Read, error) {
	panic("stub")
}

// Ends returns the log's offsets.
func (l *Log) Ends() Ends { panic("stub") }

// OffsetForTime finds the first record whose timestamp is at least ts; ok is false when there is none.
func (l *Log) OffsetForTime(ts int64) (m TimeMatch, ok bool, err error) { panic("stub") }

// MaxTimestamp finds the record with the largest timestamp (KIP-734); ok is false for an empty log.
func (l *Log) MaxTimestamp() (m TimeMatch, ok bool, err error) { panic("stub") }

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest known epoch not above epoch, and where
// it ends. (-1, -1) when unknown (KIP-101, KIP-279).
func (l *Log) EndOffsetForEpoch(epoch int32) (int32, int64) { panic("stub") }

// LatestEpoch is the newest leader epoch in the log, -1 when none.
func (l *Log) LatestEpoch() int32 { panic("stub") }

// AssignEpoch records that a leader epoch starts at the log end (called when this broker becomes leader).
func (l *Log) AssignEpoch(epoch int32) error { panic("stub") }

// TruncateTo drops all records at and above offset (durably ordered: epochs, producers and recovery point too).
func (l *Log) TruncateTo(offset int64) error { panic("stub") }

// TruncateFully empties the log and starts it at offset.
func (l *Log) TruncateFully(offset int64) error { panic("stub") }

// TrimTo raises the log start offset (DeleteRecords, follower catching up); whole segments below go.
func (l *Log) TrimTo(offset int64) error { panic("stub") }

// Retain applies time and size retention below highWatermark at nowMs, and rolls an aged active
// segment; it returns how many segments went.
func (l *Log) Retain(nowMs, highWatermark int64) (int, error) { panic("stub") }

// Roll seals the active segment when it is not empty.
func (l *Log) Roll() error { panic("stub") }

// Sync makes all that was written durable and raises the durable end.
func (l *Log) Sync() error { panic("stub") }

// RecoveryPoint is the offset up to which everything is synced: what the owner checkpoints.
func (l *Log) RecoveryPoint() int64 { panic("stub") }

// Verify reads every byte of the log with CRC, through pace (called with the bytes just read, may be
// nil), adds what is bad to the bad ranges, and returns those. For a slow scrub.
func (l *Log) Verify(ctx context.Context, pace func(bytes int64)) ([]BadRange, error) { panic("stub") }

// BadRanges are those known so far.
func (l *Log) BadRanges() []BadRange { panic("stub") }

// Dir is where the log lives.
func (l *Log) Dir() string { panic("stub") }

// Config is the current settings.
func (l *Log) Config() Config { panic("stub") }

// SetConfig changes the settings for what comes next.
func (l *Log) SetConfig(c Config) { panic("stub") }

// SizeBytes is the size of all segments' .log files.
func (l *Log) SizeBytes() int64 { panic("stub") }

// SegmentCount is the number of segments.
func (l *Log) SegmentCount() int { panic("stub") }

// Close syncs when clean is true, writes indexes and a producer snapshot, and closes.
func (l *Log) Close(clean bool) error { panic("stub") }

// Discard closes without writing anything more and forgets the log's handles, so that its directory
// can be renamed and removed. Reads in flight keep their files.
func (l *Log) Discard() { panic("stub") }
