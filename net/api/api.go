// Package api answers Kafka's requests: one file an API key, each registering the versions that it
// truly serves, and the only table from our errors to Kafka's codes (errors.go).
//
// Produce and Fetch are hot: their bytes are views on the request's frame and ranges of the log's files,
// never copies. All other messages are decoded and encoded with kmsg, within wire.BodyBytesMax.
package api

import (
	"context"
	"log/slog"
	"sync"

	"platter/coord/cluster"
	"platter/coord/config"
	"platter/coord/controller"
	"platter/coord/txn"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/net/console"
	"platter/net/server"
	"platter/replication/core"
	"platter/replication/host"
	"platter/replication/replica"
)

// Deps is what the handlers need of the rest of the broker. All may be called from any goroutine.
type Deps struct {
	BrokerID    int32
	Replicas    Replicas // HostReplicas(host)
	Image       func() *cluster.Image
	Controller  Controller  // *controller.Controller
	Store       Store       // *store.Store
	Overrides   Overrides   // *node.Node
	ProducerIDs ProducerIDs // *txn.ProducerIDs
	Groups      Groups      // *group.Coordinator
	Peer        Peer        // *node.Node; what a controller tells this broker
	// Forward sends a request that only the controller answers on to it, and gives the answer's body
	// (*peer.Pool). nil: there are no other brokers.
	Forward func(ctx context.Context, key, version int16, flexible bool, body []byte) ([]byte, error)
	// CreateMissing creates topics that clients named and that are missing, by whoever is the controller
	// (*node.Node). nil: the Controller does.
	CreateMissing func(context.Context, []controller.NewTopic) []controller.Created

	Config  *config.Broker
	Clock   clock.Clock
	Log     *slog.Logger
	Metrics *console.Metrics
	// FetchFilesMax bounds the files that all fetches together keep open for replies under way; well
	// below what the store may open. 0: a cautious default.
	FetchFilesMax int
}

// Partition is a replica as the handlers use it (*replica.Replica).
type Partition interface {
	Append(*replica.Append) (cancel func())
	State(currentEpoch int32) (replica.State, error)
	Read(offset, maxBytes int64, iso replica.Isolation, currentEpoch int32, atLeastOne bool) (commitlog.Read, replica.State, error)
	Watch(*replica.Waiter)
	Unwatch(*replica.Waiter)
	Listen(replica.Listener)
	Unlisten(replica.Listener)
	Advance()
	Log() *commitlog.Log
	LowWatermark(live func(broker int32) bool) int64
	Diverges(lastEpoch int32, offset int64) (epoch int32, endOffset int64, known bool)
	FollowerFetched(core.Fetch) error
}

// Replicas finds this broker's replicas; errors as host.Host.Replica.
type Replicas interface {
	Replica(store.TP) (Partition, error)
	TopicName(store.UUID) (string, bool)
}

// Controller makes, grows and deletes topics, and chooses leaders (*controller.Controller).
type Controller interface {
	CreateTopics(context.Context, []controller.NewTopic) []controller.Created
	DeleteTopics(context.Context, []string) []error
	CreatePartitions(context.Context, []controller.MorePartitions) []error
	Active() bool
	AlterPartition(ctx context.Context, broker int32, epoch int64, changes []controller.ISRChange) ([]controller.ISRAnswer, error)
	ControlledShutdown(ctx context.Context, broker int32, epoch int64) (remaining []store.TP, err error)
	ElectLeaders(ctx context.Context, unclean bool, tps []store.TP) ([]controller.Elected, error)
	Reassignments(context.Context) ([]controller.Reassignment, error)
}

// Peer is this broker as a controller speaks to it. Errors: controller.ErrStaleController, controller.ErrStaleBroker.
type Peer interface {
	LeaderAndISR(context.Context, controller.LeaderAndISR) ([]error, error)
	StopReplica(context.Context, controller.StopReplica) ([]error, error)
	UpdateMetadata(context.Context, controller.UpdateMetadata) error
}

// Overrides changes the settings of topics and brokers (*node.Node).
type Overrides interface {
	AlterTopic(ctx context.Context, topic string, change func(map[string]string) (map[string]string, error), dry bool) error
	AlterBroker(ctx context.Context, broker int32, change func(map[string]string) (map[string]string, error), dry bool) error
}

// Store is what administration needs of the data directories (*store.Store).
type Store interface {
	Get(store.TP) *commitlog.Log
	Dirs() []store.DirInfo
	CheckpointStarts(...store.TP) error
}

// ProducerIDs gives out producer ids that nobody had before (*txn.ProducerIDs).
type ProducerIDs interface {
	Init(context.Context, txn.InitRequest) (id int64, epoch int16, err error)
}

// HostReplicas shows a host as Replicas.
func HostReplicas(h *host.Host) Replicas { return hostReplicas{h} }

type hostReplicas struct{ *host.Host }

func (h hostReplicas) Replica(tp store.TP) (Partition, error) {
	r, err := h.Host.Replica(tp)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Handler answers requests; it is the server's Handler.
type Handler struct {
	Deps
	rejects  *server.LimitedLog // what clients did wrong
	metadata metadataCache
	pins     pins
	sessions sessions
	joined   chan struct{} // closed by Joined
	joinOnce sync.Once
}

// elapsedMs is the time by which sessions and followers are judged, the same as the host's (clock.Elapsed).
func (h *Handler) elapsedMs() int64 { return clock.ElapsedMs(h.Clock) }

// New returns a handler over the broker's parts. It holds most requests back until Joined.
func New(d Deps) *Handler {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Metrics == nil {
		d.Metrics = console.NewMetrics()
	}
	if d.CreateMissing == nil && d.Controller != nil {
		d.CreateMissing = d.Controller.CreateTopics
	}
	h := &Handler{Deps: d, rejects: server.NewLimitedLog(d.Log), joined: make(chan struct{})}
	h.pins.init(d.FetchFilesMax)
	h.sessions.init(d.Config.Int("max.incremental.fetch.session.cache.slots"))
	return h
}
