// Package store is this broker's data directories and the logs in them: lock, recovery order,
// checkpoints, background retention and flushing, deletion; a failed directory goes offline alone.
package store

import (
	"context"

	"platter/engine/commitlog"
	"platter/io/clock"
	"platter/io/disk"
)

// UUID is a topic or directory id (Kafka's Uuid: 16 bytes, shown as unpadded URL-safe base64).
type UUID [16]byte

// TP is a partition's name.
type TP struct {
	Topic     string
	Partition int32
}

// Config is what the store needs to know.
type Config struct {
	FS                    disk.FS
	Clock                 clock.Clock
	Dirs                  []string // log.dirs
	BrokerID              int32    // written to and checked against meta.properties
	ClusterID             string   // "": taken from meta.properties, or set later by SetClusterID
	OpenFilesMax          int
	RecoveryThreadsPerDir int
	RetentionCheckMs      int64 // log.retention.check.interval.ms
	FlushCheckMs          int64 // log.flush.scheduler.interval.ms
	CheckpointMs          int64 // log.flush.offset.checkpoint.interval.ms
	// TopicConfig gives a topic's settings; called for each log that is opened.
	TopicConfig func(topic string) commitlog.Config
	// HighWatermark bounds retention; nil result: nothing is replicated yet.
	HighWatermark func(TP) (int64, bool)
	// OnOffline is called once for each directory that fails.
	OnOffline func(dir string, cause error)
}

// Progress is how far recovery is; safe to read while Open runs.
type Progress struct {
	LogsTotal, LogsDone       int64
	BytesToScan, BytesScanned int64
}

// Store holds the logs.
type Store struct{}

// Open locks the directories, checks meta.properties, and loads every log, in parallel, in the recovery
// order of the design. It never talks to a network.
func Open(ctx context.Context, c Config, p *Progress) (*Store, error) { panic("stub") }

// BrokerID and ClusterID are as in meta.properties (-1 and "" when new).
func (s *Store) BrokerID() int32   { panic("stub") }
func (s *Store) ClusterID() string { panic("stub") }

// SetIdentity writes broker and cluster id to every directory's meta.properties.
func (s *Store) SetIdentity(brokerID int32, clusterID string) error { panic("stub") }

// Get returns an open log; nil when there is none here.
func (s *Store) Get(tp TP) *commitlog.Log { panic("stub") }

// TopicID is what partition.metadata says of the log.
func (s *Store) TopicID(tp TP) UUID { panic("stub") }

// All lists the logs that are here.
func (s *Store) All() []TP { panic("stub") }

// Create makes (or returns) the log in the directory with the fewest logs. An existing log with another
// topic id is a stale incarnation: it is deleted first.
func (s *Store) Create(tp TP, id UUID, c commitlog.Config) (*commitlog.Log, error) { panic("stub") }

// Delete closes the log and renames its directory at once; the files go in the background, after
// file.delete.delay.ms.
func (s *Store) Delete(tp TP) error { panic("stub") }

// HighWatermarkCheckpoint is what replication-offset-checkpoint said at start.
func (s *Store) HighWatermarkCheckpoint(tp TP) int64 { panic("stub") }

// DirInfo is one data directory's state.
type DirInfo struct {
	Path    string
	Offline error
	Logs    []TP
	Space   disk.Space
}

// Dirs describes the data directories.
func (s *Store) Dirs() []DirInfo { panic("stub") }

// Close closes all logs in parallel; clean also syncs them and writes .kafka_cleanshutdown.
func (s *Store) Close(clean bool) error { panic("stub") }
