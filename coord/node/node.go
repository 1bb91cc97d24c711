// Package node is this broker's place in the cluster: its coordinator session, registration, metadata
// image, controller and replicas, put together. The order is Connect, then store.Open (with
// Node.TopicConfig, Node.HighWatermark and Node.OnOffline in its Config), then Start, then Stop.
//
// # Sessions
//
// The session's id and password are kept on disk (session.go), so that a broker that was killed ends
// its former session at once when it is back, instead of waiting for its own ghost to expire. When the
// session expires at run time the node makes a new one, registers anew and joins the election again, by
// itself; meanwhile the replicas go on as they were told last. Data never waits for the coordinator.
//
// # Configuration
//
// Topics' and brokers' overrides are znodes, which every broker reads itself: all at Connect and whenever the
// coordinator was away or the session has expired, those of a new topic when the controller first names it, changed
// ones when /config/changes says so (configs.go, changes.go).
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/txn"
	"platter/coord/zkclient"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/disk"
	"platter/replication/follow"
	"platter/replication/host"
)

var (
	// ErrIdentity: broker or cluster id contradict what the data directories say.
	ErrIdentity = errors.New("identity mismatch")
	// ErrRegistered: another broker is registered under this broker's id, or beside it.
	ErrRegistered = errors.New("another broker is registered")
)

// Config is what a node needs to know; names of Kafka's settings beside the fields.
type Config struct {
	Servers        []string      // zookeeper.connect, without the chroot
	Chroot         string        // "" or "/path"
	SessionTimeout time.Duration // zookeeper.session.timeout.ms
	ConnectTimeout time.Duration // zookeeper.connection.timeout.ms; 0: as SessionTimeout

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
	DeleteDisabled        bool   // delete.topic.enable=false
	LagTimeMaxMs          int64  // replica.lag.time.max.ms
	Shutdown              Shutdown
	Balance               controller.Balance
	Meter                 controller.Meter // nil: nobody measures the controller

	// Peers makes the way to the other brokers, when this broker's id is known; nil: there is none, and a second
	// broker in the chroot is not reached.
	Peers func(Self) Peers
	// Follow is how followers fetch; Leaders, Clock and Log are filled in.
	Follow follow.Config

	// LogConfig makes the engine's settings of a topic's overrides, MinISR its min.insync.replicas,
	// CheckTopic says what is wrong with overrides.
	LogConfig  func(overrides map[string]string) commitlog.Config
	MinISR     func(overrides map[string]string) int
	Unclean    func(overrides map[string]string) bool // unclean.leader.election.enable; nil: never
	CheckTopic func(topic string, overrides map[string]string) error
	// SetDynamic takes the broker settings that were changed at run time, this broker's and all brokers', and
	// says which of them are wrong and do not count; nil: none are known here.
	SetDynamic func(own, all map[string]string) []error
}

// Shutdown is controlled.shutdown.*.
type Shutdown struct {
	Enabled bool
	Retries int
	Backoff time.Duration
}

// Node is one broker in its cluster. Safe for concurrent use after Start.
type Node struct {
	cfg       Config
	clusterID string
	configs   *configs

	zk      atomic.Pointer[session]
	image   atomic.Pointer[cluster.Image]
	host    atomic.Pointer[host.Host]
	id      int32
	store   *store.Store
	self    cluster.Broker // as registered; Epoch is in epoch
	epoch   atomic.Int64
	local   *local
	control *controller.Controller
	ids     *txn.ProducerIDs
	watcher watcher

	peers     Peers           // nil: none
	followers *follow.Manager // nil: none
	proposer  *proposer

	life    context.Context
	end     context.CancelFunc
	wake    chan struct{}
	flags   atomic.Uint32
	started atomic.Bool
	ended   chan struct{}
	asking  sync.WaitGroup // the proposer
}

// Connect opens a session, refuses a chroot in which foreign brokers live (*cluster.ForeignError), makes
// or reads the cluster id and reads all topics' overrides. It gives up after ConnectTimeout.
func Connect(ctx context.Context, c Config) (*Node, error) {
	n := &Node{cfg: c, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	n.configs = newConfigs(c.CheckTopic, n.log)
	n.life, n.end = context.WithCancel(context.Background())
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = c.SessionTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	s, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	n.zk.Store(s)
	if err := n.prepare(ctx, s); err != nil {
		s.Close()
		return nil, err
	}
	n.image.Store(cluster.NewImage(n.clusterID))
	return n, nil
}

// prepare looks at the chroot before anything is changed in it, and then makes sure of what Kafka's
// brokers expect there.
func (n *Node) prepare(ctx context.Context, s *session) error {
	if err := refuseForeign(ctx, s); err != nil {
		return err
	}
	id, err := cluster.EnsureLayout(ctx, s)
	if err != nil {
		return err
	}
	n.clusterID = id
	if err := n.configs.begin(ctx, s); err != nil {
		return err
	}
	n.applyDynamic(n.cfg.BrokerID) // -1, where it is not known yet, is nobody's
	return nil
}

// refuseForeign: joining a cluster that is not ours would harm somebody's data.
func refuseForeign(ctx context.Context, s *session) error {
	names, _, err := s.Children(ctx, cluster.BrokerIDsPath, nil)
	if err != nil && !errors.Is(err, zkclient.ErrNoNode) {
		return err
	}
	if _, err := cluster.ReadBrokers(ctx, s, names); err != nil {
		return err
	}
	p, _, err := s.Get(ctx, cluster.ControllerPath, nil)
	if errors.Is(err, zkclient.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	id, foreign, err := cluster.DecodeController(p)
	if err != nil || foreign {
		return &cluster.ForeignError{Path: cluster.ControllerPath, ID: id}
	}
	return nil
}

// ClusterID is /cluster/id.
func (n *Node) ClusterID() string { return n.clusterID }

// TopicConfig is for store.Config: a topic's settings as the coordinator knows them, else the defaults.
func (n *Node) TopicConfig(topic string) commitlog.Config {
	return n.cfg.LogConfig(n.configs.topic(topic))
}

// HighWatermark is for store.Config; ok is false before Start and for what is no replica here.
func (n *Node) HighWatermark(tp store.TP) (offset int64, ok bool) {
	h := n.host.Load()
	if h == nil {
		return 0, false
	}
	return h.HighWatermark(tp)
}

// OnOffline is for store.Config: the controller is told that a directory failed, finds out which replicas
// that concerns, and lets others lead.
func (n *Node) OnOffline(dir string, cause error) {
	n.log("a data directory is offline; its replicas are not served", "dir", dir, "err", cause)
	n.raise(dirFailed)
}

// Start settles the broker id (writing meta.properties), ends this broker's former session, registers
// with the endpoints as advertised, and joins the controller election. When it returns without error
// the broker is registered and, if it is the controller, its partitions are led. The store stays the
// caller's: close it after Stop.
func (n *Node) Start(ctx context.Context, s *store.Store, endpoints []cluster.Endpoint) error {
	zk := n.zk.Load()
	if err := n.settleIdentity(ctx, zk, s); err != nil {
		return err
	}
	n.store = s
	n.applyDynamic(n.id)
	n.endFormerSession(ctx)
	if s.BrokerID() != n.id || s.ClusterID() != n.clusterID {
		if err := s.SetIdentity(n.id, n.clusterID); err != nil {
			return err
		}
	}
	n.local = &local{n: n}
	n.startReplication(s)
	n.self = cluster.Broker{ID: n.id, Endpoints: endpoints, Rack: n.cfg.Rack}
	n.keepSession(zk)
	if err := n.register(ctx, zk, true); err != nil {
		return err
	}
	n.control = controller.New(controller.Config{
		BrokerID:              n.id,
		PartitionCountDefault: n.cfg.PartitionCountDefault,
		ReplicationDefault:    n.cfg.ReplicationDefault,
		DeleteDisabled:        n.cfg.DeleteDisabled,
		CheckTopic:            n.cfg.CheckTopic,
		Unclean:               func(topic string) bool { return n.cfg.Unclean != nil && n.cfg.Unclean(n.configs.topic(topic)) },
		Balance:               n.cfg.Balance,
		Meter:                 n.cfg.Meter,
		Brokers:               n.brokers(),
		Clock:                 n.cfg.Clock,
		Log:                   n.cfg.Log,
	})
	n.ids = txn.New(n.control)
	n.started.Store(true)
	go n.run()
	n.asking.Go(n.proposer.run)
	n.raise(configNews)
	return n.control.Session(ctx, zk)
}

// startReplication makes the replicas' host and what connects it with the others.
func (n *Node) startReplication(s *store.Store) {
	n.proposer = newProposer(n)
	c := host.Config{Broker: n.id, Store: s, Clock: n.cfg.Clock, LagTimeMaxMs: n.cfg.LagTimeMaxMs, Wanted: n.proposer.want}
	if n.cfg.Peers != nil {
		n.peers = n.cfg.Peers(Self{BrokerID: n.id, Epoch: n.epoch.Load, Image: n.Image, Local: n.local})
		f := n.cfg.Follow
		f.Leaders, f.Clock, f.Log = n.peers, n.cfg.Clock, n.cfg.Log
		n.followers = follow.New(f)
		c.Followers = n.followers
	}
	n.host.Store(host.New(c))
}

// brokers is the controller's way to all brokers.
func (n *Node) brokers() controller.Brokers {
	if n.peers == nil {
		return n.local
	}
	return n.peers
}

// Stop leaves the cluster: the session is closed, so the registration goes at once. Replicas refuse
// appends afterwards. It may be called without or after a failed Start.
func (n *Node) Stop(ctx context.Context) error {
	n.end()
	if n.started.Load() {
		<-n.ended
		n.asking.Wait()
		n.control.Stop()
		n.ids.Close()
	}
	err := n.leave(ctx)
	if n.followers != nil {
		n.followers.Close()
	}
	if n.peers != nil {
		n.peers.Close()
	}
	if h := n.host.Load(); h != nil {
		h.Close()
	}
	return err
}

// leave closes the session, within ctx. One that a missing coordinator cannot close is left to its timeout.
func (n *Node) leave(ctx context.Context) error {
	zk := n.zk.Load()
	done := make(chan error, 1)
	go func() { done <- zk.Close() }()
	select {
	case err := <-done:
		if errors.Is(err, zkclient.ErrSessionExpired) { // it has ended by itself, and the registration with it
			err = nil
		}
		if errors.Is(err, context.DeadlineExceeded) { // all that is here is whole, and the next start takes the session back
			n.log("no coordinator answers; this broker is registered until its session ends", "err", err)
			return nil
		}
		if err == nil && n.store != nil {
			n.forgetSession()
		}
		return err
	case <-ctx.Done():
		zk.Drop()
		return fmt.Errorf("the coordinator session was not closed in time, it will expire: %w", ctx.Err())
	}
}

// BrokerID is settled by Start.
func (n *Node) BrokerID() int32 { return n.id }

// Image is the newest metadata image, never nil; empty before Start.
func (n *Node) Image() *cluster.Image { return n.image.Load() }

// Controller is this broker's part in the controller; valid after Start.
func (n *Node) Controller() *controller.Controller { return n.control }

// Host is all replicas of this broker; valid after Start.
func (n *Node) Host() *host.Host { return n.host.Load() }

// Followers is what this broker fetches from others.
func (n *Node) Followers() follow.Stats {
	if n.followers == nil {
		return follow.Stats{}
	}
	return n.followers.Stats()
}

// ProducerIDs hands out producer ids; valid after Start.
func (n *Node) ProducerIDs() *txn.ProducerIDs { return n.ids }

// log reports what an operator should look at.
func (n *Node) log(msg string, args ...any) { n.cfg.Log.Warn(msg, args...) }
