// Package store is this broker's data directories and the logs in them: lock, recovery order,
// checkpoints, background retention and flushing, deletion; a failed directory goes offline alone.
//
// # A data directory
//
//	.lock                              locked while a process has the directory open
//	meta.properties                    whose directory it is
//	<topic>-<partition>/               one log
//	<topic>-<partition>.<32 hex>-delete/   a deleted log whose files are still to go
//	recovery-point-offset-checkpoint   what was synced: recovery starts there
//	log-start-offset-checkpoint        where trimmed logs start
//	replication-offset-checkpoint      high watermarks
//	.kafka_cleanshutdown               there between a clean close and the next start
//	.platter_boot                      the kernel's boot id when it was last open
//
// All but the last are Kafka's. Entries that the store does not know are left alone, and directories
// among them named in the log: a -stray or -future replica of Kafka, KRaft's metadata, lost+found.
//
// # What a crash may leave
//
// A new log costs no sync: its directory and partition.metadata become durable before the first sync
// of its records is reported (see settle), and a log that a power cut takes back held nothing that was
// promised. A deleted log is renamed at once; the rename is made durable before the first of its files
// goes, so that a log comes back whole or not at all. The offset checkpoints are shortcuts, but stale
// ones would lie about a later log of the same name: what they say of a partition is taken back before
// a log of that name is created, and before a log is cut below it.
//
// # What runs at once
//
// A Store is safe for concurrent use. Create and Delete of one partition exclude each other. A handful of
// goroutines for each directory walk over its logs for retention, flush.ms, checkpoints, scrub and removal; there is none for
// each partition. Directories share no lock that is held over the disk, no worker and no open files: one whose disk
// hangs holds up itself.
package store

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"platter/engine/checkpoint"
	"platter/engine/commitlog"
	"platter/engine/segment"
	"platter/engine/spindle"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/keyed"
)

var (
	// ErrIdentity: a data directory belongs to another broker or cluster.
	ErrIdentity = errors.New("data directory belongs to another broker")
	// ErrLocked: another process has a data directory open.
	ErrLocked = disk.ErrLocked
	// ErrOffline: the directory that holds (or may hold) the log has failed.
	ErrOffline = commitlog.ErrOffline
	// ErrClosed: the store was closed.
	ErrClosed = commitlog.ErrClosed
	// ErrName: the topic's name or the partition's number can be no directory's.
	ErrName = errors.New("no legal partition name")
	// ErrDuplicate: one partition is in two data directories.
	ErrDuplicate = errors.New("partition is in two data directories")
)

// UUID is a topic or directory id (Kafka's Uuid: 16 bytes, shown as unpadded URL-safe base64).
type UUID = checkpoint.UUID

// TP is a partition's name.
type TP struct {
	Topic     string
	Partition int32
}

func (tp TP) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// DirParams is what suits the device of one data directory.
type DirParams struct {
	Growth          segment.Growth // of the logs' files
	RecoveryThreads int            // logs that are loaded at once; 0: one for each core
}

// Config is what the store needs to know. FS, Clock and Dirs are required. An interval of 0 or less leaves
// that background work out: tests do it themselves.
type Config struct {
	FS disk.FS
	// Spindles is the care for the directories' devices; it is FS itself, or what FS is over. nil: none.
	Spindles *spindle.Set
	// ForDir tells what suits a directory of Dirs. nil: segment.DefaultGrowth, and a thread for each core.
	ForDir                func(dir string) DirParams
	Clock                 clock.Clock
	Dirs                  []string // log.dirs
	BrokerID              int32    // checked against meta.properties; -1: whatever that says
	ClusterID             string   // checked likewise; "": whatever it says
	OpenFilesMax          int      // shared out equally among Dirs; 0: OpenFilesDefault
	RecoveryThreadsPerDir int      // num.recovery.threads.per.data.dir; 0: as ForDir says
	RetentionCheckMs      int64    // log.retention.check.interval.ms
	// FlushCheckMs is log.flush.scheduler.interval.ms. Kafka's default, 2^63-1, means here: as often as the
	// logs' flush.ms need it.
	FlushCheckMs int64
	CheckpointMs int64 // log.flush.offset.checkpoint.interval.ms
	// HighWatermarkMs is replica.high.watermark.checkpoint.interval.ms; 0: as CheckpointMs.
	HighWatermarkMs int64
	// ScrubBytesPerSecond is how fast the logs are read to look for rot; 0: they are not.
	ScrubBytesPerSecond int64
	// TopicConfig gives a topic's settings; called for each log that is opened. nil: the defaults.
	TopicConfig func(topic string) commitlog.Config
	// BacklogBytesMax bounds what appends that wait for one directory's disk hold in memory; 0: nothing does.
	BacklogBytesMax int64
	// Hangs says whether the disk of a directory answers nothing any more; nil: none does that.
	Hangs func(dir string) bool
	// HighWatermark bounds retention; nil result: nothing is replicated yet.
	HighWatermark func(TP) (int64, bool)
	// OnOffline is called once for each directory that fails, on a goroutine of its own.
	OnOffline func(dir string, cause error)
	// BootID tells one boot of the machine from the next; nil: the kernel's. "": unknown, so that every
	// unclean start counts as one after a power cut.
	BootID func() string
	// Log is told what a directory's owner should know; nil: slog.Default().
	Log *slog.Logger

	serial bool // tests: one thing after the other, in an order that replays
}

// OpenFilesDefault is how many files the store keeps open when Config says nothing.
const OpenFilesDefault = 512

// held is one log that is here. Its fields do not change, but for what has a comment.
type held struct {
	tp        TP
	log       *commitlog.Log
	dir       *dataDir
	id        UUID  // guarded by Store.mu: an unknown one is learnt
	cleanAtMs int64 // the flusher's: when the log was last seen with nothing to sync
	// mark is the last high watermark that anybody told: at start the checkpoint's.
	mark atomic.Int64
}

// Store holds the logs.
type Store struct {
	c    Config
	log  *slog.Logger
	dirs []*dataDir
	work works // of all directories

	depths commitlog.Depths // of all logs' writes

	mu        sync.RWMutex
	logs      map[TP]*held // those of offline directories too, so that they are not created elsewhere
	brokerID  int32
	clusterID string
	closed    bool

	names keyed.Locks[TP] // one Create or Delete of a partition at a time
	stop  chan struct{}
}

// BrokerID and ClusterID are as in meta.properties (-1 and "" when new).
func (s *Store) BrokerID() int32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.brokerID
}

// ClusterID: see BrokerID.
func (s *Store) ClusterID() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.clusterID
}

// find returns what is held of tp, offline or not.
func (s *Store) find(tp TP) *held {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.logs[tp]
}

// Get returns an open log; nil when there is none here, or its directory is offline.
func (s *Store) Get(tp TP) *commitlog.Log {
	h := s.find(tp)
	if h == nil || h.dir.offline() != nil {
		return nil
	}
	return h.log
}

// TopicID is what partition.metadata says of the log; zero when it is unknown.
func (s *Store) TopicID(tp TP) UUID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if h := s.logs[tp]; h != nil {
		return h.id
	}
	return UUID{}
}

// All lists the logs that are here, in no order.
func (s *Store) All() []TP {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tps := make([]TP, 0, len(s.logs))
	for tp, h := range s.logs {
		if h.dir.offline() == nil {
			tps = append(tps, tp)
		}
	}
	return tps
}

// HighWatermarkCheckpoint is what replication-offset-checkpoint says: as found at start, or as written since; 0 for a
// log that was created since.
func (s *Store) HighWatermarkCheckpoint(tp TP) int64 {
	if h := s.find(tp); h != nil {
		return h.mark.Load()
	}
	return 0
}

// DirInfo is one data directory's state.
type DirInfo struct {
	Path    string
	Offline error // nil: it serves
	Logs    []TP  // those that were here when it failed, too
	Space   disk.Space
}

// WriteDepths tells how many batches the logs' vectored writes took.
func (s *Store) WriteDepths() commitlog.DepthStats { return s.depths.Stats() }

// Dirs describes the data directories, in the order of Config.Dirs.
func (s *Store) Dirs() []DirInfo {
	infos := make([]DirInfo, len(s.dirs))
	for i, d := range s.dirs {
		infos[i] = DirInfo{Path: d.path, Offline: d.offline()}
		if infos[i].Offline == nil {
			infos[i].Space = d.space.get(func() (disk.Space, error) { return s.c.FS.Space(d.path) })
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for tp, h := range s.logs {
		infos[h.dir.index].Logs = append(infos[h.dir.index].Logs, tp)
	}
	return infos
}

// each lists the logs that serve at this moment, for the background loops; those of d alone unless it is nil.
func (s *Store) each(d *dataDir) []*held {
	s.mu.RLock()
	defer s.mu.RUnlock()
	logs := make([]*held, 0, len(s.logs))
	for _, h := range s.logs {
		if h.dir.offline() == nil && (d == nil || h.dir == d) {
			logs = append(logs, h)
		}
	}
	if s.c.serial {
		slices.SortFunc(logs, func(a, b *held) int { return strings.Compare(a.tp.String(), b.tp.String()) })
	}
	return logs
}
