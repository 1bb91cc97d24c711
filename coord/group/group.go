// Package group is the group coordinator: the groups whose partition of __consumer_offsets this broker
// leads, their members' requests, and their committed offsets.
//
// A group belongs to partition abs(hash(id)) mod count, where hash is Java's String.hashCode. Each
// partition that this broker leads is a shard: its groups (core.Group, pure), one heap of their timers,
// and one queue of records to be appended. Nothing of a group or member is a goroutine: who calls Join
// or Sync waits on a channel, on a goroutine of its own.
//
// # Storing
//
// Commits, deletions and groups' states are records (package record) in the shard's partition. They are
// appended in the order in which they were decided, all that wait as one batch, with acks=all: whoever
// asked is answered when they are committed, and only then does memory change, in the order of the log.
// So what was answered survives this broker as its partition does.
//
// # Leadership
//
// RolesChanged looks which partitions are led here. A new one is read from its start: until then
// requests get ErrLoading. When leadership goes, those who wait get ErrNotCoordinator, and the shard is
// forgotten. Every shard is of one leadership, and is not used in another; a next epoch in which this
// broker leads on, since a follower came or went, changes nothing.
package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/group/core"
	"platter/engine/batch"
	"platter/engine/store"
	"platter/io/clock"
	"platter/replication/host"
	"platter/replication/replica"
)

// Topic is where groups are stored.
const Topic = "__consumer_offsets"

// What a request may be refused with, beside the errors of package core.
var (
	// ErrNotCoordinator: another broker coordinates the group.
	ErrNotCoordinator = errors.New("this broker does not coordinate the group")
	// ErrLoading: this broker is about to coordinate the group.
	ErrLoading = errors.New("the group's coordinator is loading")
	// ErrNotAvailable: nobody coordinates the group now, or what was asked for could not be stored now.
	ErrNotAvailable = errors.New("the group's coordinator is not available")
	// ErrInvalidGroup: the group id is empty.
	ErrInvalidGroup = errors.New("group id is invalid")
	// ErrMetadataTooLarge: the text beside an offset is longer than offset.metadata.max.bytes.
	ErrMetadataTooLarge = errors.New("offset metadata is too large")
	// ErrCommitTooLarge: the records of one request do not fit a batch.
	ErrCommitTooLarge = errors.New("commit is too large")
	// ErrStateTooLarge: a group's state does not fit a batch.
	ErrStateTooLarge = errors.New("the group's state is too large to be stored")
)

// Config is what a Coordinator needs; names of Kafka's settings beside the fields.
type Config struct {
	BrokerID   int32
	Replicas   *host.Host
	Image      func() *cluster.Image
	Controller Controller
	Clock      clock.Clock
	Log        *slog.Logger

	core.Config // group.min.session.timeout.ms and so on

	// InitialDelayMs is group.initial.rebalance.delay.ms. Unless DelayAlone, it is 0 where there is but
	// one broker.
	InitialDelayMs int64
	DelayAlone     bool

	PartitionCount    int32         // offsets.topic.num.partitions
	ReplicationFactor int16         // offsets.topic.replication.factor
	FewerReplicas     bool          // it is not set: fewer where fewer brokers are, or else the topic waits for them
	SegmentBytes      int           // offsets.topic.segment.bytes
	Codec             batch.Codec   // offsets.topic.compression.codec
	LoadBytes         int           // offsets.load.buffer.size
	CommitTimeout     time.Duration // offsets.commit.timeout.ms
	CommitAcks        int16         // offsets.commit.required.acks
	MetadataBytesMax  int           // offset.metadata.max.bytes
	Retention         time.Duration // offsets.retention.minutes
	RetentionCheck    time.Duration // offsets.retention.check.interval.ms
	MemoryBytesMax    int64         // groups.memory.max.bytes: what all groups together may take
}

// Controller makes the topic (*controller.Controller).
type Controller interface {
	CreateTopics(context.Context, []controller.NewTopic) []controller.Created
}

// Coordinator is all groups of this broker. Safe for concurrent use.
type Coordinator struct {
	cfg   Config
	names *names
	life  context.Context
	end   context.CancelFunc
	jobs  sync.WaitGroup
	loads chan struct{} // bounds the shards that load at a time
	bytes atomic.Int64  // what all groups take, roughly
	quiet atomic.Int64  // no warning about what clients do before this time, in ms

	creating chan struct{} // one creation of the topic at a time

	roles   sync.Mutex // one look at the roles at a time
	mu      sync.RWMutex
	shards  map[int32]*shard
	changed chan struct{} // closed and made anew whenever a shard was loaded or dropped
	closed  bool
}

// New makes a coordinator without shards: RolesChanged follows.
func New(c Config) *Coordinator {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	co := &Coordinator{
		cfg: c, names: newNames(), loads: make(chan struct{}, loadersMax), creating: make(chan struct{}, 1),
		shards: map[int32]*shard{}, changed: make(chan struct{}),
	}
	co.life, co.end = context.WithCancel(context.Background())
	co.jobs.Go(co.expireOffsets)
	return co
}

// Close ends all shards: who waits gets ErrNotCoordinator. What was being appended may still be answered.
func (c *Coordinator) Close() {
	c.end()
	c.roles.Lock()
	c.mu.Lock()
	c.closed = true
	all := c.shards
	c.shards = map[int32]*shard{}
	c.mu.Unlock()
	for _, s := range all {
		s.stop(ErrNotCoordinator)
	}
	c.roles.Unlock()
	c.jobs.Wait()
}

// PartitionOf is the partition of __consumer_offsets that a group belongs to.
func PartitionOf(group string, count int32) int32 {
	h := int32(0)
	for _, u := range utf16.Encode([]rune(group)) {
		h = 31*h + int32(u)
	}
	switch {
	case h == -1<<31:
		h = 0
	case h < 0:
		h = -h
	}
	return h % count
}

// find is the shard of a group.
func (c *Coordinator) find(group string) (*shard, error) {
	if len(group) > math.MaxInt16 { // it could not be stored
		return nil, fmt.Errorf("%w: it has %d bytes", ErrInvalidGroup, len(group))
	}
	t := c.cfg.Image().Topics[Topic]
	if t == nil || len(t.Partitions) == 0 {
		return nil, ErrNotCoordinator
	}
	return c.shard(PartitionOf(group, int32(len(t.Partitions))))
}

func (c *Coordinator) shard(partition int32) (*shard, error) {
	c.mu.RLock()
	s := c.shards[partition]
	c.mu.RUnlock()
	if s == nil {
		return nil, fmt.Errorf("%w: partition %d of %s", ErrNotCoordinator, partition, Topic)
	}
	return s, nil
}

// quietMs is how long one warning about what clients do stands for those that would follow.
const quietMs = 1000

// warn logs what clients bring about, at a bounded rate.
func (c *Coordinator) warn(msg string, args ...any) {
	now := c.cfg.Clock.NowMs()
	if until := c.quiet.Load(); now < until || !c.quiet.CompareAndSwap(until, now+quietMs) {
		return
	}
	c.cfg.Log.Warn(msg, args...)
}

// all is the shards as they are now.
func (c *Coordinator) all() []*shard {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]*shard, 0, len(c.shards))
	for _, s := range c.shards {
		out = append(out, s)
	}
	return out
}

// replicaOf is the replica that a shard writes to.
func (c *Coordinator) replicaOf(partition int32) (*replica.Replica, error) {
	return c.cfg.Replicas.Replica(store.TP{Topic: Topic, Partition: partition})
}
