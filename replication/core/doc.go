// Package core is the pure state machine of one partition on one broker: leader or follower, leader
// epoch, in-sync set, high watermark, and the fencing of whoever is behind. It decides; a driver
// (replication/replica) acts. Inside there is no clock, socket, file or goroutine: time comes with the
// events, and each event returns the Work that follows from it.
//
// # Rules
//
// The commit end of a replica is its written or its durable end, as the topic's durability class says
// (Class). On the leader, the high watermark is the least commit end among the in-sync set; it never
// goes back within a leader's term, and stands still while the set is smaller than the effective
// min.insync.replicas: min(setting, replica count) (KAFKA-15583). A follower's high watermark is what
// its leader said, at most its own end.
//
// The in-sync set is the controller's. A leader that wants it changed proposes (Work.Propose, KIP-497),
// one proposal at a time. Until the answer is here it counts with the larger of both sets: a member
// that is about to leave still holds the high watermark back, one that is about to join does already.
//
// A leader that was just appointed knows nothing of its followers, so its high watermark stands until
// each member of the set has fetched from it.
//
// An Assignment with an older leader epoch is refused with ErrStaleEpoch, likewise one of the same
// leader epoch with an older partition epoch. A follower's fetch with another leader epoch is refused
// with ErrFencedEpoch or ErrUnknownEpoch (KIP-320), one from a broker that is no replica with
// ErrNotReplica, one of an earlier life of that broker with ErrStaleBroker (KIP-903).
//
// A Core is not safe for concurrent use.
package core

import "errors"

var (
	// ErrStaleEpoch: the assignment is older than the one held.
	ErrStaleEpoch = errors.New("leader or partition epoch is stale")
	// ErrNotLeader: only the partition's leader can do this.
	ErrNotLeader = errors.New("not the leader")
	// ErrFencedEpoch and ErrUnknownEpoch: the peer's leader epoch is older, or newer, than ours.
	ErrFencedEpoch  = errors.New("leader epoch is fenced")
	ErrUnknownEpoch = errors.New("leader epoch is unknown")
	// ErrNotReplica: the fetching broker is not in the assignment.
	ErrNotReplica = errors.New("broker is not a replica of the partition")
	// ErrStaleBroker: the fetch is of an earlier registration of the broker.
	ErrStaleBroker = errors.New("broker epoch is stale")
	// ErrNotEnoughReplicas: the in-sync set is smaller than min.insync.replicas.
	ErrNotEnoughReplicas = errors.New("not enough in-sync replicas")
)

// Class says which end of a log commits.
type Class int

// Classes: with Written a record counts once it is in the page cache, with Durable once it is synced.
const (
	Written Class = iota
	Durable
)

// Role is this broker's part.
type Role int

// Roles. Idle: no assignment yet, or no leader is known to follow.
const (
	Idle Role = iota
	Leader
	Follower
)

// NoLeader is the leader of a partition without one.
const NoLeader int32 = -1

// Config is what the core needs to know of broker and topic.
type Config struct {
	Self         int32
	MinISR       int   // min.insync.replicas
	Class        Class // of the topic
	LagTimeMaxMs int64 // replica.lag.time.max.ms
}

// Ends are a log's offsets; Written and Durable are exclusive.
type Ends struct {
	Start, Written, Durable int64
}

// Assignment is what the controller says of the partition (LeaderAndIsr).
type Assignment struct {
	ControllerEpoch int32
	Leader          int32
	LeaderEpoch     int32
	PartitionEpoch  int32 // version of the state znode
	ISR             []int32
	Replicas        []int32
}

// Work is what the driver has to do after an event. The zero Work: nothing.
type Work struct {
	// Lead: this broker begins a term as leader; the log gets the epoch at its end.
	Lead bool
	// Follow: this broker begins to follow Leader(): cut the log back by leader epochs, then fetch.
	Follow bool
	// Lost: this broker does not lead any more, or others may have led meanwhile; whoever waits for the high watermark
	// waits in vain.
	Lost bool
	// Moved: the high watermark rose, or the in-sync set changed so that waiters may be judged anew.
	Moved bool
	// Propose: ask the controller for this in-sync set, against PartitionEpoch(). Nil: nothing.
	Propose []int32
}
