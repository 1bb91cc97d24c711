// Package node is this broker's place in the cluster: its coordinator session, registration, metadata
// image, controller and replicas, put together. The order is Connect, then store.Open (with
// Node.TopicConfig, Node.HighWatermark and Node.OnOffline in its Config), then Start, then Stop.
package node

import (
	"context"
	"log/slog"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/txn"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/disk"
	"platter/replication/host"
)

// Config is what a node needs to know; names of Kafka's settings beside the fields.
type Config struct {
	Servers        []string      // zookeeper.connect, without the chroot
	Chroot         string        // "" or "/path"
	SessionTimeout time.Duration // zookeeper.session.timeout.ms
	ConnectTimeout time.Duration // zookeeper.connection.timeout.ms

	FS    disk.FS
	Clock clock.Clock
	Log   *slog.Logger
	// SessionDir is where the session's id and password are kept: the first of log.dirs. It is
	// touched in Start only, when the store holds its lock.
	SessionDir string

	BrokerID              int32  // broker.id; -1: as in meta.properties, else generated
	GenerateID            bool   // broker.id.generation.enable
	ReservedIDMax         int32  // reserved.broker.max.id
	Rack                  string // broker.rack
	PartitionCountDefault int32  // num.partitions
	ReplicationDefault    int16  // default.replication.factor

	// LogConfig makes the engine's settings of a topic's overrides, MinISR its min.insync.replicas,
	// CheckTopic says what is wrong with overrides.
	LogConfig  func(overrides map[string]string) commitlog.Config
	MinISR     func(overrides map[string]string) int
	CheckTopic func(overrides map[string]string) error
}

// Node is one broker in its cluster. Safe for concurrent use after Start.
type Node struct{}

// Connect opens a session, refuses a chroot in which foreign brokers live, makes or reads the cluster id
// and reads all topics' overrides.
func Connect(ctx context.Context, c Config) (*Node, error) { panic("stub") }

// ClusterID is /cluster/id.
func (n *Node) ClusterID() string { panic("stub") }

// TopicConfig is for store.Config: a topic's settings as the coordinator knows them, else the defaults.
func (n *Node) TopicConfig(topic string) commitlog.Config { panic("stub") }

// HighWatermark is for store.Config; ok is false before Start and for what is no replica here.
func (n *Node) HighWatermark(tp store.TP) (offset int64, ok bool) { panic("stub") }

// OnOffline is for store.Config: the replicas in the failed directory go offline.
func (n *Node) OnOffline(dir string, cause error) { panic("stub") }

// Start settles the broker id (writing meta.properties), ends this broker's former session, registers
// with the endpoints as advertised, and joins the controller election. When it returns without error
// the broker is registered and, if it is the controller, its partitions are led. The store stays the
// caller's: close it after Stop.
func (n *Node) Start(ctx context.Context, s *store.Store, endpoints []cluster.Endpoint) error {
	panic("stub")
}

// Stop leaves the cluster: the session is closed, so the registration goes at once. Replicas refuse
// appends afterwards.
func (n *Node) Stop(ctx context.Context) error { panic("stub") }

// BrokerID is settled by Start.
func (n *Node) BrokerID() int32 { panic("stub") }

// Image is the newest metadata image, never nil; empty before Start.
func (n *Node) Image() *cluster.Image { panic("stub") }

// Controller is this broker's part in the controller; valid after Start.
func (n *Node) Controller() *controller.Controller { panic("stub") }

// Host is all replicas of this broker; valid after Start.
func (n *Node) Host() *host.Host { panic("stub") }

// ProducerIDs hands out producer ids; valid after Start.
func (n *Node) ProducerIDs() *txn.ProducerIDs { panic("stub") }
