package commitlog

import (
	"platter/engine/segment"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/handles"
)

// Options is what Open needs. FS, Handles, Clock and Dir are required.
type Options struct {
	FS        disk.FS
	Handles   *handles.Cache
	Clock     clock.Clock
	Dir       string // made when missing; its parent is there, durably
	Topic     string // with Partition: only for messages
	Partition int32
	Config    Config

	// RecoveryPoint and LogStartOffset are as the directory's checkpoints say; 0 when they say nothing.
	RecoveryPoint  int64
	LogStartOffset int64
	// CleanShutdown: the log was closed cleanly; nothing is scanned.
	CleanShutdown bool
	// SameBoot: the machine has not restarted since the log was last written, so the page cache is
	// whole and only the tail behind the last index entry is scanned. Never after the directory went
	// offline: a failed sync may have dropped pages.
	SameBoot bool

	// Growth is how files are grown ahead of their data; nil: segment.DefaultGrowth.
	Growth *segment.Growth
	// Remove removes a retired segment's file, now or later, without holding up the disk; should the process die meanwhile,
	// the next Open begins it anew. nil: FS.Remove.
	Remove func(path string) error

	// Backlog is shared by the logs of one disk; nil: no bound.
	Backlog *Backlog
	// Depths counts the vectored writes, when set.
	Depths *Depths
	// Progress, when set, is told of growth: bytes that will be scanned, bytes that have been.
	Progress func(toScan, scanned int64)
	// OnIOError is called once, when the log goes offline. Never under a lock of the log.
	OnIOError func(error)
	// LowerRecoveryPoint must make the checkpointed recovery point and log start at most offset, durably, before it
	// returns: the log is about to be truncated there (or was found to end there, in Open), and what comes
	// after is not synced. It is called under the log's lock: it must not call the log. nil: the owner
	// keeps no checkpoint.
	LowerRecoveryPoint func(offset int64) error
	// Background runs f soon, on another goroutine (the sync of a sealed segment). nil: go f().
	Background func(f func())
	// Logf, when set, is told what recovery did: cut tails, rebuilt indexes, bad ranges.
	Logf func(format string, args ...any)

	snapshotBytes int64   // tests: in the place of the constant
	planted       planted // the crash simulation: a bug that it has to find
}

// planted is a bug that only the crash simulation, or the build tag plantedbug, can switch on: to show
// that it would be found.
type planted int

const (
	plantedNone       planted = iota
	plantedKeepTorn           // recovery keeps the torn tail
	plantedEarlyAck           // appends are acknowledged before their sync
	plantedSyncNoData         // the durable end moves without a sync of the data
	plantedLoseLast           // recovery cuts one batch too many
)
