package controller

import (
	"context"

	"platter/coord/cluster"
	"platter/engine/store"
)

// Brokers is the way to the brokers: how a controller tells them what it decided. Each call is fenced:
// a broker refuses a controller epoch older than one it has seen (ErrStaleController), and a broker
// epoch older than its own (ErrStaleBroker).
//
// Calls for one broker are made one after the other, in the order of the decisions.
type Brokers interface {
	// LeaderAndISR makes the broker leader or follower; errs are by partition, in the order given.
	LeaderAndISR(ctx context.Context, to cluster.Broker, r LeaderAndISR) (errs []error, err error)
	// StopReplica ends replicas; errs are by partition, in the order given.
	StopReplica(ctx context.Context, to cluster.Broker, r StopReplica) (errs []error, err error)
	// UpdateMetadata gives the broker its picture of the cluster.
	UpdateMetadata(ctx context.Context, to cluster.Broker, r UpdateMetadata) error
}

// Header is on every push.
type Header struct {
	ControllerID    int32
	ControllerEpoch int32
	BrokerEpoch     int64 // of the broker that is spoken to
}

// LeaderAndISR is Kafka's request of that name. Full: these are all partitions of the broker, others
// that it has are strays.
type LeaderAndISR struct {
	Header
	Full       bool
	Partitions []PartitionState
}

// PartitionState is one partition's state. New: it was just created.
type PartitionState struct {
	TP             store.TP
	TopicID        store.UUID
	State          cluster.State
	PartitionEpoch int32
	Replicas       []int32
	Adding         []int32
	Removing       []int32
	New            bool
}

// StopReplica is Kafka's request of that name. LeaderEpoch -2: the topic is being deleted.
type StopReplica struct {
	Header
	Partitions []StopPartition
}

// LeaderEpochDeleted stands for any leader epoch in the StopReplica of a deleted topic.
const LeaderEpochDeleted int32 = -2

// StopPartition is one replica to stop.
type StopPartition struct {
	TP          store.TP
	LeaderEpoch int32
	Delete      bool
}

// UpdateMetadata is Kafka's request of that name.
type UpdateMetadata struct {
	Header
	Update cluster.Update
}
