// Package replica drives one partition's replication core over its commit log.
package replica

import (
	"errors"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
)

var (
	// ErrNotLeader: this broker does not lead the partition (now).
	ErrNotLeader = errors.New("not the leader")
	// ErrUnknownPartition: no such replica here.
	ErrUnknownPartition = errors.New("unknown partition")
	// ErrFencedEpoch and ErrUnknownEpoch: the client's leader epoch is older, or newer, than ours.
	ErrFencedEpoch  = errors.New("leader epoch is fenced")
	ErrUnknownEpoch = errors.New("leader epoch is unknown")
	// ErrNotEnoughReplicas: acks=all with an in-sync set below min.insync.replicas.
	ErrNotEnoughReplicas = errors.New("not enough in-sync replicas")
	// ErrTimeout: the records are in the log but were not committed in time.
	ErrTimeout = errors.New("not committed in time")
)

// State is one consistent look at a replica.
type State struct {
	TopicID       store.UUID
	Leader        int32 // broker id, -1 none
	LeaderEpoch   int32
	IsLeader      bool
	LogStart      int64
	HighWatermark int64 // exclusive
	LastStable    int64 // last stable offset; equals HighWatermark without transactions
	LogEnd        int64 // exclusive
}

// Replica is one partition on this broker. Safe for concurrent use.
type Replica struct{}

// Append is a produce to the partition.
type Append struct {
	Batches []batch.Batch
	Acks    int16 // 0, 1 or -1
	// Done is called once: acks 0 and 1 when written, -1 when the high watermark has passed the last
	// record. Never under a lock.
	Done func(commitlog.Appended)
}

// Append checks leadership and queues in call order (see commitlog.Log.Enqueue); errors come by Done.
// It returns a cancel for the wait of acks=-1 (nil when nothing waits): cancelled, Done gets ErrTimeout
// unless it was called already.
func (r *Replica) Append(a *Append) (cancel func()) { panic("stub") }

// State returns one consistent look. currentEpoch -1 checks nothing.
func (r *Replica) State(currentEpoch int32) (State, error) { panic("stub") }

// Isolation chooses how far a read may go.
type Isolation int8

// Isolation levels; LogEnd is for followers.
const (
	ReadUncommitted Isolation = iota // to the high watermark
	ReadCommitted                    // to the last stable offset
	LogEnd
)

// Read reads ranges as commitlog.Log.Read, with one State to go with it.
func (r *Replica) Read(offset, maxBytes int64, iso Isolation, currentEpoch int32, atLeastOne bool) (commitlog.Read, State, error) {
	panic("stub")
}

// Waiter is signalled when a replica that it watches moves (high watermark, log end, leadership, start).
// C has room for one signal.
type Waiter struct{ C chan struct{} }

// Watch adds w; Unwatch removes it.
func (r *Replica) Watch(w *Waiter)   { panic("stub") }
func (r *Replica) Unwatch(w *Waiter) { panic("stub") }

// Log gives the log for look-ups (time, epochs).
func (r *Replica) Log() *commitlog.Log { panic("stub") }
