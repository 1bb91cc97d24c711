// Package server is the broker's side of its connections: listeners, frames in, replies out in request
// order, and every bound that keeps one peer from costing the others anything.
//
// Each connection has two goroutines. The reader reads one frame at a time into a pooled buffer. A
// produce is handed to the handler at once, so that produces reach their partitions in arrival order and
// only the wait for acknowledgement overlaps. Any other request is a barrier: the connection's second
// goroutine, the writer, serves it when everything before it was answered, and what comes behind it
// waits. Meanwhile the reader goes on reading, within bounds, which is how a peer that goes away during
// a long poll is noticed: the request's context ends.
//
// What is bounded: a frame (RequestBytesMax), the frames and unsent requests of one connection, the
// frames of all connections, connections in all and by address, the time a frame may take to come and a
// reply to go. Memory for a frame is taken as its bytes arrive, never because a size was announced.
//
// A bad frame costs its own connection; the log names the cause, at a bounded rate.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platter/io/buf"
	ioconn "platter/io/conn"
	"platter/net/console"
	"platter/net/frame"
	"platter/net/wire"
)

// Listener is one open listener and its name in Kafka's `listeners`, by which metadata answers choose
// the endpoints that they tell a client.
type Listener struct {
	Name string // "PLAINTEXT"
	net.Listener
}

// Config is what the server needs; the names beside are Kafka's. A zero bound is replaced by the default.
type Config struct {
	Listeners []Listener // owned by the server from New on
	Handler   Handler
	Log       *slog.Logger
	Metrics   *console.Metrics

	RequestBytesMax       int            // socket.request.max.bytes, default 100 MiB
	SendBufferBytes       int            // socket.send.buffer.bytes, 0 or -1: the system's
	ReceiveBufferBytes    int            // socket.receive.buffer.bytes, 0 or -1: the system's
	IdleMax               time.Duration  // connections.max.idle.ms, default 10 min; negative: no limit
	ConnectionsMax        int            // max.connections, default no limit: at it, none is accepted until one goes
	ConnectionsPerIPMax   int            // max.connections.per.ip, default no limit: above it, closed at once
	ConnectionsOverrides  map[string]int // max.connections.per.ip.overrides, by address
	Reply                 frame.Options  // io.send.copy.bytes.max
	QueuedRequestsMax     int            // queued.max.requests: unanswered requests of one connection, default 500
	QueuedRequestBytesMax int64          // queued.max.request.bytes: frames of all connections, default or -1: QueuedRequestBytesDefault
	TransferMin           int64          // bytes a second that a frame must come and a reply must go with, default 16 KiB
	TransferGrace         time.Duration  // what each transfer gets on top, default 30 s
	DrainMax              time.Duration  // how long Close lets requests finish, default 5 s

	starvedMax time.Duration // for tests
}

// QueuedRequestBytesDefault is what the frames of all connections may take where nothing else is said.
const QueuedRequestBytesDefault = 512 << 20

// Handler answers requests; net/api has the broker's.
type Handler interface {
	// Accept reads the header of a frame and says where its body is, and whether it goes to Produce.
	// An error closes the connection and is logged.
	Accept(frame []byte) (h wire.Header, body []byte, produce bool, err error)
	// Produce queues a produce request on the caller's goroutine, in call order, and calls r.Answer
	// exactly once, now or later, on any goroutine.
	Produce(r *Request)
	// Serve answers any other request; it may block until ctx ends. An error closes the connection
	// and is logged.
	Serve(ctx context.Context, r *Request) (*frame.Reply, error)
}

// ErrStopped ends the connections of a server that is closing.
var ErrStopped = errors.New("the broker is stopping")

// Server serves connections from Start to Close.
type Server struct {
	cfg  Config
	log  *LimitedLog
	pool *buf.Pool

	mu    sync.Mutex
	conns map[*conn]struct{}

	nextID   atomic.Uint64
	stopping atomic.Bool
	stop     chan struct{}

	starvedSince time.Time      // the janitor's
	relief       int            // its too: how many connections go at once
	wg           sync.WaitGroup // accept loops, janitor, connections
}

// New checks c; nothing is accepted before Start.
func New(c Config) (*Server, error) {
	if c.Handler == nil || len(c.Listeners) == 0 {
		return nil, errors.New("server: a handler and at least one listener are needed")
	}
	c.setDefaults()
	s := &Server{
		cfg:   c,
		log:   NewLimitedLog(c.Log),
		pool:  buf.New(c.QueuedRequestBytesMax),
		conns: map[*conn]struct{}{},
		stop:  make(chan struct{}),
	}
	c.Metrics.WatchMemory(func() (used, budget int64) { u := s.pool.Usage(); return u.Used, u.Budget })
	gate := ioconn.NewGate(ioconn.Limits{
		Max: c.ConnectionsMax, WaitAtMax: true,
		PerAddressMax: c.ConnectionsPerIPMax, PerAddress: c.ConnectionsOverrides,
		SendBufferBytes: c.SendBufferBytes, ReceiveBufferBytes: c.ReceiveBufferBytes,
		Refused: s.refused,
	})
	s.cfg.Listeners = slices.Clone(c.Listeners)
	for i, l := range s.cfg.Listeners {
		s.cfg.Listeners[i].Listener = gate.Listener(l.Listener)
	}
	return s, nil
}

func (c *Config) setDefaults() {
	setDefault(&c.RequestBytesMax, 100<<20)
	setDefault(&c.IdleMax, 10*time.Minute)
	setDefault(&c.QueuedRequestsMax, 500)
	if c.QueuedRequestBytesMax <= 0 {
		c.QueuedRequestBytesMax = QueuedRequestBytesDefault
	}
	setDefault(&c.TransferMin, 16<<10)
	setDefault(&c.TransferGrace, 30*time.Second)
	setDefault(&c.DrainMax, 5*time.Second)
	setDefault(&c.starvedMax, starvedMax)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = console.NewMetrics()
	}
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Start accepts connections until Close.
func (s *Server) Start() {
	for _, l := range s.cfg.Listeners {
		s.wg.Add(1)
		go s.accept(l)
	}
	s.wg.Add(1)
	go s.janitor()
}

// Close stops accepting and reading, lets requests under way finish until ctx ends or DrainMax has
// passed, and closes all connections. It returns ctx's error when requests were cut off.
func (s *Server) Close(ctx context.Context) error {
	if s.stopping.Swap(true) {
		return nil
	}
	close(s.stop)
	for _, l := range s.cfg.Listeners {
		l.Close()
	}
	s.mu.Lock()
	for c := range s.conns {
		c.stopReading()
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, s.cfg.DrainMax)
	defer cancel()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range s.list() {
		c.fail(ErrStopped)
	}
	<-done
	return ctx.Err()
}

func (s *Server) list() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		l = append(l, c)
	}
	return l
}
