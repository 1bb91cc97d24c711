// Package replica drives one partition's replication core over its commit log: it takes appends from
// clients, answers reads up to the high watermark or the log end, holds back the acknowledgement of
// acks=all until the watermark has passed, and wakes whoever waits for the partition to move.
//
// # What may run at once
//
// Everything. An append takes the log's own queue and one short lock of the replica for the watermark;
// State and Read take no lock at all: they look at an immutable view behind an atomic pointer and at
// the log's ends, and look again when the view changed meanwhile.
//
// A term as leader counts the appends that are on their way to the log. Assign ends the term, waits
// until none is, and only then touches the log: so no batch with an old leader epoch can land behind
// the begin of a new one, or on a log that was just cut back.
//
// Callbacks (Append.Done) run on any goroutine, without a lock held.
package replica

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/replication/core"
)

var (
	// ErrNotLeader: this broker does not lead the partition (now).
	ErrNotLeader = core.ErrNotLeader
	// ErrNextTerm is ErrNotLeader at a moment at which this broker is being given a next epoch, or has lost the
	// leadership: who asks again will know. Append says so before it returns.
	ErrNextTerm = fmt.Errorf("%w: the term is over", ErrNotLeader)
	// ErrUnknownPartition: no such replica here.
	ErrUnknownPartition = errors.New("unknown partition")
	// ErrFencedEpoch and ErrUnknownEpoch: the client's leader epoch is older, or newer, than ours.
	ErrFencedEpoch  = core.ErrFencedEpoch
	ErrUnknownEpoch = core.ErrUnknownEpoch
	// ErrNotEnoughReplicas: acks=all with an in-sync set below min.insync.replicas.
	ErrNotEnoughReplicas = core.ErrNotEnoughReplicas
	// ErrNotEnoughReplicasAfterAppend: the same, but it came after the records were in the log.
	ErrNotEnoughReplicasAfterAppend = errors.New("not enough in-sync replicas after the append")
	// ErrTimeout: the records are in the log but were not committed in time.
	ErrTimeout = errors.New("not committed in time")
	// ErrStaleEpoch: the controller's word is older than what is held.
	ErrStaleEpoch = core.ErrStaleEpoch
)

// State is one consistent look at a replica.
type State struct {
	TopicID     store.UUID
	Leader      int32 // broker id, -1 none
	LeaderEpoch int32
	IsLeader    bool
	// LedSince is the leader epoch in which this broker began to lead, -1 when it does not. A leader that is given the
	// next epoch, since a follower came or went, leads on: nobody else can have led between.
	LedSince      int32
	LogStart      int64
	HighWatermark int64 // exclusive
	LastStable    int64 // last stable offset; equals HighWatermark without transactions
	LogEnd        int64 // exclusive
	// Unsettled: a new leader whose high watermark has not reached the begin of its term yet, so that it may lie
	// below what consumers were told by the leader before (KIP-207).
	Unsettled bool
}

// Config is what a replica needs.
type Config struct {
	Self          int32
	TopicID       store.UUID
	Log           *commitlog.Log
	HighWatermark int64 // as the checkpoint says
	MinISR        int
	LagTimeMaxMs  int64 // replica.lag.time.max.ms
	// Wanted is told when the replica, as leader, wants another in-sync set (Proposal). It must not block. nil:
	// nobody cares.
	Wanted func(*Replica)
}

// partitionLog is what a replica uses of *commitlog.Log.
type partitionLog interface {
	Enqueue(*commitlog.Append)
	Read(offset, maxBytes, limit int64, atLeastOne bool) (commitlog.Read, error)
	Ends() commitlog.Ends
	AssignEpoch(epoch int32) error
	SetConfig(commitlog.Config)
	EpochAt(offset int64) int32
	EndOffsetForEpoch(epoch int32) (int32, int64)
	TrimTo(offset int64) error
	TruncateTo(offset int64) error
	TruncateFully(offset int64) error
}

// Replica is one partition on this broker. Safe for concurrent use.
type Replica struct {
	self    int32
	topicID store.UUID
	log     partitionLog
	wanted  func(*Replica)

	view atomic.Pointer[view]
	hw   atomic.Int64
	// minISR is what SetConfig was told last; core has it once assigning was held.
	minISR atomic.Int64

	assigning sync.Mutex // Assign and Stop, one at a time
	mu        sync.Mutex // what follows; never held over I/O or a callback
	core      *core.Core
	waits     waits

	watchers watchers
}

// view is what readers see of role and term; immutable.
type view struct {
	leader   int32
	epoch    int32
	term     *term // nil: not leading
	ledSince int32 // State.LedSince
	begin    int64 // log end when the term began
	underMin bool  // the in-sync set is too small for acks=all
	stopped  bool
}

// New makes a replica without an assignment: it refuses appends and reads until Assign.
func New(c Config) *Replica { return newReplica(c, c.Log) }

func newReplica(c Config, log partitionLog) *Replica {
	r := &Replica{self: c.Self, topicID: c.TopicID, log: log, wanted: c.Wanted}
	r.core = core.New(core.Config{Self: c.Self, MinISR: c.MinISR, LagTimeMaxMs: c.LagTimeMaxMs}, r.ends(), c.HighWatermark)
	r.hw.Store(r.core.HighWatermark())
	r.view.Store(&view{leader: core.NoLeader, epoch: -1, ledSince: -1})
	return r
}

// State returns one consistent look. currentEpoch below 0 checks nothing; another one is compared with the
// leader epoch: ErrFencedEpoch, ErrUnknownEpoch. A replica that is not the leader is no error here.
func (r *Replica) State(currentEpoch int32) (State, error) {
	v, s := r.look()
	return s, v.check(currentEpoch)
}

// look reads view, high watermark and ends until they belong together.
func (r *Replica) look() (*view, State) {
	for {
		v := r.view.Load()
		hw := r.hw.Load()
		e := r.log.Ends()
		if r.view.Load() != v {
			continue
		}
		// The ends were read last: a trim may have passed the watermark that was read before.
		hw = max(e.Start, min(hw, e.Written))
		return v, State{
			TopicID:       r.topicID,
			Leader:        v.leader,
			LeaderEpoch:   v.epoch,
			IsLeader:      v.term != nil,
			LedSince:      v.ledSince,
			LogStart:      e.Start,
			HighWatermark: hw,
			LastStable:    hw,
			LogEnd:        e.Written,
			Unsettled:     v.term != nil && hw < v.begin,
		}
	}
}

func (v *view) check(currentEpoch int32) error {
	switch {
	case v.stopped:
		return ErrUnknownPartition
	case currentEpoch < 0 || currentEpoch == v.epoch:
		return nil
	case currentEpoch < v.epoch:
		return fmt.Errorf("%w: %d, now %d", ErrFencedEpoch, currentEpoch, v.epoch)
	}
	return fmt.Errorf("%w: %d, now %d", ErrUnknownEpoch, currentEpoch, v.epoch)
}

// Isolation chooses how far a read may go.
type Isolation int8

// Isolation levels; LogEnd is for followers.
const (
	ReadUncommitted Isolation = iota // to the high watermark
	ReadCommitted                    // to the last stable offset
	LogEnd
)

// Read reads ranges as commitlog.Log.Read, with one State to go with it. Only the leader answers
// (ErrNotLeader); errors are those of State and of commitlog.Log.Read, and the State comes with them.
func (r *Replica) Read(offset, maxBytes int64, iso Isolation, currentEpoch int32, atLeastOne bool) (commitlog.Read, State, error) {
	v, s := r.look()
	if err := v.check(currentEpoch); err != nil {
		return commitlog.Read{}, s, err
	}
	if v.term == nil {
		return commitlog.Read{}, s, ErrNotLeader
	}
	limit := s.HighWatermark
	switch iso {
	case ReadCommitted:
		limit = s.LastStable
	case LogEnd:
		limit = s.LogEnd
	}
	read, err := r.log.Read(offset, maxBytes, limit, atLeastOne)
	return read, s, err
}

// LowWatermark is the least log start of this leader and its followers on live brokers; for others than the leader it
// is this log's own.
func (r *Replica) LowWatermark(live func(broker int32) bool) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.core.LowWatermark(live)
}

// Log gives the log for look-ups (time, epochs).
func (r *Replica) Log() *commitlog.Log {
	l, _ := r.log.(*commitlog.Log)
	return l
}

func (r *Replica) ends() core.Ends {
	e := r.log.Ends()
	return core.Ends{Start: e.Start, Written: e.Written, Durable: e.Durable}
}
