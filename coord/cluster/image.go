// Package cluster is the cluster as brokers see it: registration, Kafka's znodes (layout and JSON), and
// the metadata image that the controller pushes.
//
// The znodes are byte for byte what Kafka 3.9 in ZooKeeper mode writes and reads (ZkData.scala), but for
// the mark in registrations (registration.go). Whatever is read from them is checked: errors wrap
// ErrZnode.
package cluster

import (
	"slices"

	"platter/engine/store"
)

// Endpoint is one listener of a broker.
type Endpoint struct {
	Listener string // "PLAINTEXT"
	Protocol string // security protocol
	Host     string
	Port     int32
}

// Broker is one registered broker. Epoch is the czxid of its znode.
type Broker struct {
	ID        int32
	Epoch     int64
	Endpoints []Endpoint
	Rack      string
}

// Partition is one partition's state. Leader -1: none.
type Partition struct {
	Leader          int32
	LeaderEpoch     int32
	ControllerEpoch int32
	ISR             []int32
	Replicas        []int32
	OfflineReplicas []int32
	ZkVersion       int32
}

// Topic is one topic; Partitions is indexed by partition.
type Topic struct {
	Name       string
	ID         store.UUID
	Partitions []Partition
	Configs    map[string]string // overrides
}

// Image is immutable; an update makes a new one.
type Image struct {
	ClusterID       string
	ControllerID    int32 // -1: none
	ControllerEpoch int32
	Brokers         []Broker // sorted by id
	Topics          map[string]*Topic
	ByID            map[store.UUID]*Topic
	BrokerConfigs   map[string]map[string]string // by broker id ("" is the cluster default)
}

// NewImage is an image without brokers and topics.
func NewImage(clusterID string) *Image {
	return &Image{ClusterID: clusterID, ControllerID: -1}
}

// Topic finds a topic by name; nil when there is none.
func (i *Image) Topic(name string) *Topic { return i.Topics[name] }

// TopicByID finds a topic by id; nil when there is none.
func (i *Image) TopicByID(id store.UUID) *Topic { return i.ByID[id] }

// Broker finds a live broker.
func (i *Image) Broker(id int32) (Broker, bool) {
	n, ok := slices.BinarySearchFunc(i.Brokers, id, func(b Broker, id int32) int { return int(b.ID) - int(id) })
	if !ok {
		return Broker{}, false
	}
	return i.Brokers[n], true
}

// Endpoint finds a broker's endpoint for the listener that a client came by.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}
