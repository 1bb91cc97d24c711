// Package host is all replicas of this broker: it applies what the controller tells, and finds replicas.
package host

import (
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/replication/replica"
)

// PartitionState is what the controller tells of one partition (Kafka's LeaderAndIsr).
type PartitionState struct {
	TP              store.TP
	TopicID         store.UUID
	ControllerEpoch int32
	Leader          int32
	LeaderEpoch     int32
	ISR             []int32
	Replicas        []int32
	PartitionEpoch  int32 // version of the state znode
	MinISR          int
	Config          commitlog.Config
}

// Host holds the replicas.
type Host struct{}

// New makes a host for the broker over its store.
func New(brokerID int32, s *store.Store) *Host { panic("stub") }

// Apply makes this broker leader or follower of each partition; results are in the order given.
// An older leader epoch than the one held is refused.
func (h *Host) Apply(states []PartitionState) []error { panic("stub") }

// Stop ends the replicas; with remove their logs are deleted.
func (h *Host) Stop(tps []store.TP, remove bool) []error { panic("stub") }

// Reconfigure gives a topic's replicas their new settings.
func (h *Host) Reconfigure(topic string, c commitlog.Config, minISR int) { panic("stub") }

// Replica finds one; ErrUnknownPartition.
func (h *Host) Replica(tp store.TP) (*replica.Replica, error) { panic("stub") }

// ForTopicID finds the topic's name among this broker's replicas.
func (h *Host) TopicName(id store.UUID) (string, bool) { panic("stub") }

// HighWatermark is for the store's retention and checkpoint.
func (h *Host) HighWatermark(tp store.TP) (int64, bool) { panic("stub") }

// All calls fn for each replica.
func (h *Host) All(fn func(store.TP, *replica.Replica)) { panic("stub") }
