// Package cluster is the cluster as brokers see it: registration, Kafka's znodes (layout and JSON), and
// the metadata image that the controller pushes.
package cluster

import "platter/engine/store"

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

// Topic finds a topic by name; nil when there is none.
func (i *Image) Topic(name string) *Topic { panic("stub") }

// TopicByID finds a topic by id; nil when there is none.
func (i *Image) TopicByID(id store.UUID) *Topic { panic("stub") }

// Broker finds a live broker.
func (i *Image) Broker(id int32) (Broker, bool) { panic("stub") }

// Endpoint finds a broker's endpoint for the listener that a client came by.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) { panic("stub") }
