// Package broker puts one broker together out of its layers, starts them in order, and stops them in the
// reverse one.
//
// The order is: I/O backend, metrics (so that recovery can be watched), embedded coordinator where no
// ZooKeeper is named, node (session and topics' settings), store (locks and recovers the data
// directories), listeners, node again (registration), server. What has started when a later step fails is
// stopped again, so no lock and no listener stays behind.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"platter/coord/config"
	"platter/coord/node"
	"platter/coord/zkserver"
	"platter/engine/checkpoint"
	"platter/engine/spindle"
	"platter/engine/store"
	"platter/io/backend"
	"platter/io/clock"
	"platter/io/disk"
	"platter/net/api"
	"platter/net/console"
	"platter/net/peer"
	"platter/net/server"
)

// Options is what a broker is started with.
type Options struct {
	Config  *config.Broker
	Log     *slog.Logger
	Out     io.Writer // the banner goes here once the broker is ready
	Program string    // how the user calls this program, for the banner
	Version string
}

// Broker is one running broker.
type Broker struct {
	o        Options
	clock    clock.Clock
	started  time.Time
	fs       disk.FS
	backend  string // name of the I/O backend and why it is that one
	choices  []backend.Choice
	profiles profiles // of the data directories
	budget   budget

	spindles    *spindle.Set
	metrics     *console.Metrics
	console     *console.Console
	consoleAddr string
	coordinator *zkserver.Server
	node        *node.Node
	store       *store.Store
	listeners   []server.Listener
	server      *server.Server
	pool        *peer.Pool

	stops   []step       // what is to be undone, the first last
	offline atomic.Int32 // data directories that failed
	fatal   chan error   // why the broker cannot go on
}

// step is one thing to stop.
type step struct {
	what string
	stop func(context.Context) error
}

// stopTimeout bounds an orderly stop as a whole; the parts have shorter bounds of their own.
const stopTimeout = 60 * time.Second

// Run starts a broker, serves until ctx ends, and stops it. The error is the one line that says what went
// wrong.
func Run(ctx context.Context, o Options) error {
	b := &Broker{o: o, clock: machineClock(), started: time.Now(), fatal: make(chan error, 1)}
	err := b.start(ctx)
	if err == nil {
		b.banner()
		select {
		case <-ctx.Done():
			o.Log.Info("stopping")
		case err = <-b.fatal:
			o.Log.Error("stopping", "err", err)
		}
	}
	stopErr := b.stop()
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled):
		o.Log.Info("stopped before the broker was ready")
		return stopErr
	case err != nil:
		return err
	}
	o.Log.Info("stopped")
	return stopErr
}

func (b *Broker) start(ctx context.Context) error {
	if err := b.selectBackend(); err != nil {
		return err
	}
	b.budget = descriptorBudget(b.o.Config)
	b.guardDisks()
	b.o.Log.Info("starting", "version", b.o.Version, "dirs", b.o.Config.List("log.dirs"), "openFilesMax", b.budget.files, "connectionsMax", b.budget.connections)
	if err := probe(ctx, b.o.Config.Listeners()); err != nil {
		return err
	}
	progress := &store.Progress{}
	for _, part := range []func(context.Context, *store.Progress) error{
		b.startConsole, b.startCoordinator, b.connect, b.openStore, b.listen, b.serve,
	} {
		if err := part(ctx, progress); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if b.console != nil {
		b.console.SetReady(true)
	}
	return nil
}

// atStop notes what undoes a step.
func (b *Broker) atStop(what string, stop func(context.Context) error) {
	b.stops = append(b.stops, step{what, stop})
}

// stop undoes all steps, the last first. Every step is tried; the first error is returned.
func (b *Broker) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if b.console != nil {
		b.console.SetReady(false)
	}
	var first error
	for len(b.stops) > 0 {
		s := b.stops[len(b.stops)-1]
		b.stops = b.stops[:len(b.stops)-1]
		if err := patiently(func() error { return s.stop(ctx) }); err != nil {
			b.o.Log.Error("stopping "+s.what, "err", err)
			if first == nil {
				first = fmt.Errorf("stopping %s: %w", s.what, err)
			}
		}
	}
	return first
}

// startCoordinator starts the coordinator inside this process, unless ZooKeeper servers are named.
func (b *Broker) startCoordinator(ctx context.Context, _ *store.Progress) error {
	if servers, _ := b.o.Config.ZooKeeper(); len(servers) > 0 {
		return nil
	}
	dir, _ := b.o.Config.Value("coordinator.dir")
	if dir == "" {
		var err error
		if dir, err = coordinatorDir(b.fs, b.o.Config.List("log.dirs")); err != nil {
			return err
		}
	}
	addr, _ := b.o.Config.Value("coordinator.listener")
	admin, _ := b.o.Config.Value("coordinator.admin.listener")
	zk, err := zkserver.Start(ctx, zkserver.Config{
		FS: b.fs, Clock: b.clock, Dir: dir, Addr: addr, MaxCnxns: b.budget.coordinator,
		TickMs:          b.o.Config.Int("coordinator.tick.ms"),
		FourLetterWords: b.o.Config.List("coordinator.four.letter.words"),
		AdminAddr:       admin,
		Log:             b.o.Log.With("part", "coordinator"),
	})
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("coordinator: %s is in use: another broker runs on these data directories", dir)
	}
	if err != nil {
		return err
	}
	b.coordinator = zk
	go b.watchCoordinator(zk)
	b.atStop("the coordinator", func(context.Context) error { return zk.Close() })
	return nil
}

// coordinatorDir is where the coordinator inside keeps its tree: in the first data directory that has one,
// since the order of log.dirs is free, else in the first. Where data is of a cluster already, no new tree is
// begun: it would be another cluster's.
func coordinatorDir(fs disk.FS, dataDirs []string) (string, error) {
	const name, lock, metaBytesMax = ".coordinator", ".lock", 64 << 10
	for _, d := range dataDirs {
		infos, _ := fs.ReadDir(filepath.Join(d, name)) // what cannot be read is told of by the store
		if slices.ContainsFunc(infos, func(in disk.Info) bool { return in.Name != lock }) {
			return filepath.Join(d, name), nil
		}
	}
	for _, d := range dataDirs {
		p, err := disk.ReadFile(fs, filepath.Join(d, checkpoint.MetaFile), metaBytesMax)
		if err != nil {
			continue
		}
		if m, err := checkpoint.ParseMeta(p); err == nil && m.ClusterID != "" {
			return "", fmt.Errorf("%s belongs to cluster %q, and no directory of log.dirs has that cluster's coordinator (%s): name the one that has, or set coordinator.dir or zookeeper.connect, or move the directory away", d, m.ClusterID, name)
		}
	}
	return filepath.Join(dataDirs[0], name), nil
}

// watchCoordinator says it aloud when the coordinator ends by itself (a failed sync): partitions are led
// and served as before, since a dead coordinator never stops data, but no topic or leader can change.
func (b *Broker) watchCoordinator(zk *zkserver.Server) {
	<-zk.Done()
	if err := zk.Err(); err != nil && !errors.Is(err, zkserver.ErrClosed) {
		b.o.Log.Error("the coordinator inside has failed; data is served on, but topics and leaders cannot change until the broker is restarted", "err", err)
	}
}

// zooKeeper is whom the broker coordinates with: the coordinator inside, or the servers that are named.
func (b *Broker) zooKeeper() (servers []string, chroot string) {
	if b.coordinator != nil {
		return []string{b.coordinator.Addr().String()}, ""
	}
	return b.o.Config.ZooKeeper()
}

func (b *Broker) connect(ctx context.Context, _ *store.Progress) error {
	c := b.o.Config
	servers, chroot := b.zooKeeper()
	rack, _ := c.Value("broker.rack")
	if b.coordinator == nil {
		b.o.Log.Info("connecting to ZooKeeper", "servers", servers, "chroot", chroot)
	}
	n, err := node.Connect(ctx, node.Config{
		Servers: servers, Chroot: chroot,
		SessionTimeout:        millis(c.Int64("zookeeper.session.timeout.ms")),
		ConnectTimeout:        millis(c.Int64("zookeeper.connection.timeout.ms")),
		FS:                    b.fs,
		Clock:                 b.clock,
		Log:                   b.o.Log.With("part", "node"),
		SessionDir:            c.List("log.dirs")[0],
		BrokerID:              int32(c.Int("broker.id")),
		GenerateID:            c.Bool("broker.id.generation.enable"),
		ReservedIDMax:         int32(c.Int("reserved.broker.max.id")),
		Rack:                  rack,
		PartitionCountDefault: int32(c.Int("num.partitions")),
		ReplicationDefault:    int16(c.Int("default.replication.factor")),
		DeleteDisabled:        !c.Bool("delete.topic.enable"),
		LagTimeMaxMs:          c.Int64("replica.lag.time.max.ms"),
		Shutdown: node.Shutdown{
			Enabled: c.Bool("controlled.shutdown.enable"),
			Retries: c.Int("controlled.shutdown.max.retries"),
			Backoff: millis(c.Int64("controlled.shutdown.retry.backoff.ms")),
		},
		Balance:    balance(c),
		Meter:      b.metrics.Controller(),
		Peers:      b.peers,
		Follow:     followConfig(c),
		LogConfig:  c.Log,
		MinISR:     c.MinISR,
		Unclean:    c.Unclean,
		CheckTopic: config.CheckTopic,
		SetDynamic: c.SetDynamic,
	})
	if b.coordinator == nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%s: no ZooKeeper answers there (without zookeeper.connect the coordinator inside Platter is used): %w",
			b.coordinatorName(), err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", b.coordinatorName(), err)
	}
	b.node = n
	// Stop before the store closes: a broker that is still registered must not lose its logs.
	b.atStop("the node", n.Stop)
	return nil
}

// coordinatorName is for messages.
func (b *Broker) coordinatorName() string {
	if b.coordinator != nil {
		return "coordinator inside this process"
	}
	v, _ := b.o.Config.Value("zookeeper.connect")
	return "zookeeper.connect=" + v
}

func (b *Broker) openStore(ctx context.Context, p *store.Progress) error {
	c := b.o.Config
	watch := b.watchRecovery(p)
	defer watch()
	b.spindles = b.careFor()
	s, err := store.Open(ctx, store.Config{
		FS: b.spindles, Clock: b.clock, Spindles: b.spindles, ForDir: b.suits,
		Dirs:                  c.List("log.dirs"),
		BrokerID:              int32(c.Int("broker.id")),
		ClusterID:             b.node.ClusterID(),
		OpenFilesMax:          b.budget.files,
		RecoveryThreadsPerDir: c.Int("num.recovery.threads.per.data.dir"), // 0, its default: as suits the device
		RetentionCheckMs:      c.Int64("log.retention.check.interval.ms"),
		FlushCheckMs:          c.Int64("log.flush.scheduler.interval.ms"),
		CheckpointMs:          c.Int64("log.flush.offset.checkpoint.interval.ms"),
		HighWatermarkMs:       c.Int64("replica.high.watermark.checkpoint.interval.ms"),
		ScrubBytesPerSecond:   c.Int64("log.scrub.bytes.per.second"),
		Log:                   b.o.Log.With("part", "store"),
		TopicConfig:           b.node.TopicConfig,
		HighWatermark:         b.node.HighWatermark,
		OnOffline:             b.dirFailed,
		Hangs:                 diskHangs,
		BacklogBytesMax:       b.backlogBytes(),
	}, p)
	if err != nil {
		b.spindles.Close()
		return err
	}
	b.store = s
	// Before the node in the list of stops, so after it in time.
	last := len(b.stops) - 1
	b.stops = append(b.stops[:last:last], step{"the store", func(context.Context) error {
		defer b.spindles.Close()
		return s.Close(true)
	}}, b.stops[last])
	b.startDirtyWatch()
	// Once the node has stopped nobody knows the high watermarks any more.
	b.atStop("the checkpoints", func(context.Context) error { return s.Checkpoint() })
	return nil
}

// dirFailed takes note of a data directory that went offline. A broker without any left ends, as Kafka's
// does: it could only refuse, and a new start recovers what can be recovered.
func (b *Broker) dirFailed(dir string, cause error) {
	b.node.OnOffline(dir, cause)
	if int(b.offline.Add(1)) == len(b.o.Config.List("log.dirs")) {
		b.fatal <- fmt.Errorf("no data directory is left; the last to fail was %s: %w", dir, cause)
	}
}

// serve registers the broker and takes requests.
func (b *Broker) serve(ctx context.Context, _ *store.Progress) error {
	c := b.o.Config
	if err := b.node.Start(ctx, b.store, b.endpoints()); err != nil {
		return fmt.Errorf("%s: %w", b.coordinatorName(), err)
	}
	groups := b.startGroups()
	handler := api.New(api.Deps{
		Groups:      groups,
		Peer:        b.node,
		Forward:     b.pool.Forward,
		BrokerID:    b.node.BrokerID(),
		Replicas:    api.HostReplicas(b.node.Host()),
		Image:       b.node.Image,
		Controller:  b.node.Controller(),
		Store:       b.store,
		Overrides:   b.node,
		ProducerIDs: b.node.ProducerIDs(),
		Config:      c,
		Clock:       b.clock,
		Log:         b.o.Log.With("part", "api"),
		Metrics:     b.metrics,

		CreateMissing: b.node.CreateTopics,
		FetchFilesMax: b.budget.files / 2,
	})
	overrides, err := resolveOverrides(ctx, c)
	if err != nil {
		return err
	}
	perIP := c.Int("max.connections.per.ip")
	if perIP == 0 {
		perIP = -1 // nobody but those in the overrides; 0 is no bound to the server
	}
	srv, err := server.New(server.Config{
		Listeners: b.listeners, Handler: handler, Metrics: b.metrics,
		Log:                   b.o.Log.With("part", "server"),
		RequestBytesMax:       c.Int("socket.request.max.bytes"),
		SendBufferBytes:       c.Int("socket.send.buffer.bytes"),
		ReceiveBufferBytes:    c.Int("socket.receive.buffer.bytes"),
		IdleMax:               millis(c.Int64("connections.max.idle.ms")),
		ConnectionsMax:        b.budget.connections,
		ConnectionsPerIPMax:   perIP,
		ConnectionsOverrides:  overrides,
		Reply:                 replyOptions(c),
		QueuedRequestsMax:     c.Int("queued.max.requests"),
		QueuedRequestBytesMax: c.Int64("queued.max.request.bytes"),
	})
	if err != nil {
		return err
	}
	b.server = srv
	b.metrics.WatchWrites(b.store.WriteDepths)
	b.metrics.WatchBroker(console.Sources{BrokerID: b.node.BrokerID(), Image: b.node.Image, MinISR: c.MinISR, Store: b.store, Host: b.node.Host()})
	b.metrics.WatchReplication(console.Replication{
		Host: b.node.Host(), Followers: b.node.Followers, ISR: b.node.ISRStats, Waiting: b.node.Controller().Waiting,
	})
	srv.Start()
	b.atStop("the server", func(ctx context.Context) error {
		err := srv.Close(ctx)
		if errors.Is(err, context.DeadlineExceeded) { // nothing that was acknowledged is in question
			b.o.Log.Warn("requests that were still waiting were cut off")
			return nil
		}
		return err
	})
	b.atStop("the leaderships", b.node.HandOver)
	defer handler.Joined()
	joining, cancel := context.WithTimeout(ctx, joinMax)
	defer cancel()
	if err := b.node.Joined(joining); err != nil && ctx.Err() == nil {
		b.o.Log.Warn("the controller has not spoken yet; clients learn of the cluster when it does")
	}
	return nil
}
