// Package zkserver is the embedded, ZooKeeper-compatible coordinator: any ZooKeeper client takes it for
// a standalone server.
//
// # How a request goes
//
// A goroutine a connection reads frames, or a poller for many connections at once (Config.Pollers), which leaves one
// that it would have to wait for to a goroutine until that is over. A read is answered at once from the tree under
// a shared lock, straight into the connection's output buffer. A write becomes a proposal; the one committer takes
// all that wait, writes them to the log as one frame, syncs once, applies them, and answers. Nothing is visible
// before it is durable.
//
// Who commits depends on the disk (store.quick, store.swift). On a slow one it is a loop, so that the readers go on
// reading. On a quick one a connection's own goroutine commits if nobody is at it, and so does a poller for a client
// that is alone; on a swift one a poller without others beside it commits whatever a turn has brought, and the loop
// hands back to it.
//
// # Ordering
//
// A connection's requests are answered in order: a read that follows a write which is still under way
// waits in the connection's queue, and the committer runs it right behind that write, before the next
// one. Events are put into the output buffers while the tree is locked for the change, so an event
// precedes any reply that shows the change.
//
// # Sessions
//
// A session lives in the tree (and so in the log) from its creation to its close or expiry; when it was
// last heard of is known only here. After a restart every session has its full timeout again; so has it
// after the process was suspended.
//
// # Failures
//
// A full disk refuses writes with SystemError, and so does a process that has no descriptor for a new log; reads go
// on, and writing goes on once there is room.
// A failed sync or write ends the server: Done is closed and Err tells why; it must be started anew,
// which recovers what is on the disk. A damaged log is a *CorruptError.
package zkserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"platter/coord/tree"
	"platter/coord/zk"
	"platter/io/buf"
	"platter/io/clock"
	ioconn "platter/io/conn"
	"platter/io/disk"
)

// Config is the server's settings, by zoo.cfg's names where it has them.
type Config struct {
	FS             disk.FS
	Clock          clock.Clock
	Dir            string // dataDir
	LogDir         string // dataLogDir; empty: Dir
	Addr           string // clientPortAddress:clientPort; port 0 picks one; no host means loopback
	TickMs         int    // tickTime; 0: 2000
	MaxClientCnxns int    // for each address; 0: no limit
	MaxCnxns       int    // in all; 0: 10,000. Fewer when the process may not have so many descriptors
	ExtendedTypes  bool   // extendedTypesEnabled: TTL nodes
	EnforceQuota   bool   // enforceQuota: hard limits are refusals
	SuperDigest    string // DigestAuthenticationProvider.superDigest: "super:hash", who may do everything
	// ContainerCheck is how often empty containers and outlived TTL nodes are looked for
	// (znode.container.checkIntervalMs); 0: a minute. ContainerNeverUsed is how long a container may stay that
	// never had a child (znode.container.maxNeverUsedIntervalMs); 0: for ever.
	ContainerCheck, ContainerNeverUsed time.Duration
	ContainerPerMinute                 int // znode.container.maxPerMinute; 0: 10,000
	OutstandingLimit                   int // globalOutstandingLimit; 0: 1,000
	// FourLetterWords are allowed beside srvr (4lw.commands.whitelist); "*": all.
	FourLetterWords []string
	// MinSessionMs and MaxSessionMs bound negotiated timeouts (minSessionTimeout, maxSessionTimeout); 0: 2 and
	// 20 ticks.
	MinSessionMs, MaxSessionMs int
	SkipACL                    bool // skipACL: everybody may do everything
	ReconfigEnabled            bool // reconfigEnabled: reconfig is answered with Unimplemented, not ReconfigDisabled
	FrameBytesMax              int  // jute.maxbuffer, 64 MiB at most; 0: 1,048,575
	// AdminAddr is where the admin page is served (admin.serverAddress:admin.serverPort), AdminURL the path of
	// its commands (admin.commandURL; empty: /commands). No address: none is.
	AdminAddr, AdminURL string
	AdminOptional       bool // go on without it when its port is taken
	// Initial is the configuration as it was given, for the admin page; secrets are left out.
	Initial string
	// SnapRetain is how many snapshots stay, with the logs that they need (autopurge.snapRetainCount); 3 at
	// least. PurgeEvery is how often what is older goes (autopurge.purgeInterval); 0: with every new
	// snapshot; below 0: never.
	SnapRetain int
	SnapCount  int           // snapCount: writes after which a snapshot is made; 0: only the log's size counts
	SyncWarn   time.Duration // fsync.warningthresholdms: slower syncs are warned of; 0: none
	PurgeEvery time.Duration
	// Pollers is how many goroutines wait for the connections together, where the platform has such a thing (io/conn's
	// Loop): a busy server needs less of the processor so. 0: each connection has a goroutine of its own.
	Pollers int
	Log     *slog.Logger
}

// snapOnCloseBytes of log since the last snapshot make Close write one.
const snapOnCloseBytes = 256 << 10

const (
	tickMsDefault           = 2000
	maxCnxnsDefault         = 10_000
	outstandingLimitDefault = 1000
	// descriptorsSpare are for all but the clients' connections: files, the admin page, the runtime.
	descriptorsSpare = 64
)

func (c *Config) options() (o tree.Options) {
	if c.ExtendedTypes {
		o |= tree.TTLNodes
	}
	if c.EnforceQuota {
		o |= tree.EnforceQuota
	}
	return o
}

// ErrClosed: the server was closed.
var ErrClosed = errors.New("server is closed")

// Server is one running coordinator.
type Server struct {
	config   Config
	log      *slog.Logger
	ln       net.Listener
	mu       sync.RWMutex // the committer changes the tree, everybody else reads it
	tree     *tree.Tree
	watches  *tree.Watches[*conn]
	pollers  []*poller
	sessions *tracker
	sweeps   repeater
	reaping  repeater
	queue    proposals
	batch    []*proposal // the committer's
	touched  []*conn     // the committer's: who has something to send
	store    *store

	refusedWrites int   // the committer's: since the disk was full
	fullSaidMs    int64 // and when that was last told of (tracker time)

	conns  connTable
	frames *buf.Pool
	stats  stats

	outstanding   atomic.Int64 // writes that wait for the committer
	heldBodies    atomic.Int64 // bytes of reads that wait for writes
	backlog       atomic.Int64 // bytes of long outputs, that clients have not read
	evicting      atomic.Bool
	snapshotting  atomic.Bool
	quotaWarnedMs atomic.Int64 // tracker time
	traceMask     atomic.Int64
	snapZxid      atomic.Int64 // of the last snapshot
	snapAtMs      atomic.Int64 // and its time (Unix milliseconds)
	startedAt     time.Time
	admin         *http.Server // nil: none
	adminLn       net.Listener

	running sync.WaitGroup
	stop    chan struct{} // closed first
	ending  sync.Once
	err     atomic.Pointer[error]
	done    chan struct{} // closed last
}

// Start recovers the tree from snapshot and log and listens.
func Start(ctx context.Context, c Config) (*Server, error) {
	c = withDefaults(c)
	s := &Server{
		config:  c,
		log:     c.Log,
		watches: tree.NewWatches((*conn).identities),
		frames:  buf.New(frameBudgetBytes),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	s.startedAt = c.Clock.Now()
	s.traceMask.Store(traceMaskDefault)
	s.queue.init()
	s.conns.init()
	var err error
	if s.store, s.tree, err = openStore(ctx, c.FS, c.Dir, c.LogDir, c.Log); err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	s.store.clock, s.store.purgeEvery = c.Clock, c.PurgeEvery
	s.store.snapRetain, s.store.snapCount = max(c.SnapRetain, snapRetainMin), c.SnapCount
	s.sessions = newTracker(c.Clock, c.TickMs, s.expire)
	s.sessions.restore(s.tree)
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", c.Addr)
	if err != nil {
		s.store.close()
		return nil, fmt.Errorf("coordinator: listen: %w", err)
	}
	s.ln = ioconn.NewGate(s.limits()).Listener(ln)
	if err := s.startAdmin(ctx); err != nil {
		ln.Close()
		s.store.close()
		return nil, err
	}
	s.startPollers()
	s.running.Add(2)
	go s.acceptLoop()
	go s.commitLoop()
	s.startSweeps()
	s.startReaping()
	return s, nil
}

func withDefaults(c Config) Config {
	if c.TickMs <= 0 {
		c.TickMs = tickMsDefault
	}
	if c.ContainerCheck <= 0 {
		c.ContainerCheck = containerCheckDefault
	}
	if c.ContainerPerMinute <= 0 {
		c.ContainerPerMinute = containerPerMinuteDefault
	}
	if c.OutstandingLimit <= 0 {
		c.OutstandingLimit = outstandingLimitDefault
	}
	if c.MinSessionMs <= 0 {
		c.MinSessionMs = 2 * c.TickMs
	}
	if c.MaxSessionMs <= 0 {
		c.MaxSessionMs = 20 * c.TickMs
	}
	if c.FrameBytesMax <= 0 {
		c.FrameBytesMax = zk.MaxFrameBytes
	}
	c.FrameBytesMax = min(c.FrameBytesMax, framePayloadMax-2*batchBytesMax)
	if c.AdminURL == "" {
		c.AdminURL = "/commands"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	most := max(ioconn.DescriptorLimit()-descriptorsSpare, 1)
	if c.MaxCnxns <= 0 {
		c.MaxCnxns = min(maxCnxnsDefault, most)
	}
	if c.MaxCnxns > most {
		c.Log.Warn("coordinator: fewer connections than wished for: the process may not open more files", "most", most, "wished", c.MaxCnxns)
		c.MaxCnxns = most
	}
	switch host, port, err := net.SplitHostPort(c.Addr); {
	case c.Addr == "":
		c.Addr = "127.0.0.1:0"
	case err == nil && host == "":
		c.Addr = net.JoinHostPort("127.0.0.1", port)
	}
	return c
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Done is closed once the server has ended, by Close or by a failure that Err names.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why the server ended: nil while it runs, ErrClosed after Close.
func (s *Server) Err() error {
	if p := s.err.Load(); p != nil {
		return *p
	}
	return nil
}

// Close stops listening, drops connections, syncs. Sessions are kept on disk.
func (s *Server) Close() error {
	s.end(ErrClosed)
	<-s.done
	if err := s.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// end starts the end of the server, for the first cause it is given.
func (s *Server) end(cause error) {
	s.ending.Do(func() {
		s.err.Store(&cause)
		close(s.stop)
		s.ln.Close()
		s.stopAdmin()
		s.sweeps.end()
		s.reaping.end()
		s.conns.closeAll()
		s.queue.close()
		go s.finish()
	})
}

// finish closes the store once everybody has ended. A long log becomes a snapshot, so that the next
// start is quick.
func (s *Server) finish() {
	defer close(s.done)
	s.running.Wait()
	s.endPollers()
	if errors.Is(s.Err(), ErrClosed) && s.store.since > snapOnCloseBytes {
		s.store.roll()
		s.saveSnapshot(s.tree.Capture())
	}
	if err := s.store.close(); err != nil {
		s.log.Warn("coordinator: close", "err", err)
	}
}
