package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	ioconn "platter/io/conn"
	"platter/net/frame"
)

// Conn is one client's connection, as a handler sees it.
type Conn struct {
	ID       uint64
	Listener string // name of the listener that it came in by
	Remote   net.Addr
	Local    net.Addr
	// Client is the software's name and version, once it said so (ApiVersions 3 and later).
	Client atomic.Pointer[Client]
}

// Client is what a client calls itself (KIP-511).
type Client struct{ Name, Version string }

// conn is a connection with its two goroutines and the requests between them.
type conn struct {
	Conn
	s  *Server
	nc net.Conn

	frames *ioconn.FrameReader // the reader's
	out    output              // the reader's

	ctx    context.Context // ends when no more requests come: the peer is gone, or the broker stops
	cancel context.CancelFunc
	gone   context.Context // ends when the peer is gone; parent of ctx
	leave  context.CancelFunc

	mu       sync.Mutex
	queue    []*Request // in arrival order, not yet answered and sent
	next     int        // the first request of queue that was not handed over
	held     int64      // bytes of the frames in queue
	inline   *Request   // the reader sees to it itself: the writer leaves it alone
	unsent   bool       // the reader has answers to send yet
	readDone bool       // no more requests will come
	dead     bool       // nothing more can be sent
	cause    error      // why, nil for a peer that went away
	ready    sync.Cond  // for the writer
	room     sync.Cond  // for the reader

	goroutines atomic.Int32 // reader and writer, still running

	// Unix nanoseconds; 0: none. The janitor fails the connection when one has passed.
	readDeadline, writeDeadline atomic.Int64
	idleSince                   atomic.Int64
	readSince, serveSince       atomic.Int64 // when the frame got memory, when the barrier began; 0: none
}

func newConn(s *Server, listener string, nc net.Conn) *conn {
	c := &conn{
		Conn: Conn{ID: s.nextID.Add(1), Listener: listener, Remote: nc.RemoteAddr(), Local: nc.LocalAddr()},
		s:    s,
		nc:   nc,
	}
	c.out = output{Conn: nc, c: c}
	c.gone, c.leave = context.WithCancel(context.Background())
	c.ctx, c.cancel = context.WithCancel(c.gone)
	c.frames = c.newFrameReader()
	c.ready.L, c.room.L = &c.mu, &c.mu
	c.goroutines.Store(2)
	c.touch()
	return c
}

func (c *conn) touch() { c.idleSince.Store(time.Now().UnixNano()) }

// fail ends the connection with a cause; the first one counts.
func (c *conn) fail(cause error) {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return
	}
	c.dead = true
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	c.leave()
	c.nc.Close()
	c.ready.Broadcast()
	c.room.Broadcast()
}

// stopReading lets what was read be answered, and takes nothing more.
func (c *conn) stopReading() {
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	c.mu.Lock()
	c.endOfRequests()
	c.mu.Unlock()
}

// endOfRequests is called with the lock held, once no more requests will come.
func (c *conn) endOfRequests() {
	c.readDone = true
	c.cancel()
	c.ready.Broadcast()
	c.room.Broadcast()
}

// exit is the end of each of the two goroutines; the last one out closes.
func (c *conn) exit() {
	if c.goroutines.Add(-1) == 0 {
		c.nc.Close()
		c.leave()
		c.s.forget(c)
		c.report()
	}
	c.s.wg.Done()
}

// report says why the connection ended, unless the peer just went away.
func (c *conn) report() {
	c.mu.Lock()
	cause := c.cause
	c.mu.Unlock()
	switch {
	case cause == nil, errors.Is(cause, ErrStopped):
		c.s.cfg.Log.Debug("connection ended", "peer", c.Remote.String(), "connection", c.ID)
	case errors.Is(cause, errGone):
		c.s.cfg.Log.Debug("connection ended", "peer", c.Remote.String(), "connection", c.ID, "err", cause)
	default:
		c.s.log.Warn("connection closed", "peer", c.Remote.String(), "connection", c.ID, "listener", c.Listener, "err", cause)
	}
}

// errGone marks causes that lie with the network or the peer and are no news.
var errGone = errors.New("peer is gone")

// checkDeadlines fails the connection when a transfer or its idleness has lasted too long.
func (c *conn) checkDeadlines(now int64) {
	switch d := c.readDeadline.Load(); {
	case d != 0 && now > d:
		c.fail(errors.New("frame came too slowly"))
		return
	}
	if d := c.writeDeadline.Load(); d != 0 && now > d {
		c.fail(errors.New("reply was taken too slowly"))
		return
	}
	idle := c.s.cfg.IdleMax
	if idle < 0 || now-c.idleSince.Load() < int64(idle) {
		return
	}
	c.mu.Lock()
	busy := len(c.queue) > 0
	c.mu.Unlock()
	if !busy && c.readDeadline.Load() == 0 {
		c.fail(fmt.Errorf("%w: idle for %v", errGone, idle))
	}
}

// transferDeadline is when n bytes must have gone over, whichever way.
func (c *conn) transferDeadline(n int64) int64 {
	d := c.s.cfg.TransferGrace + time.Duration(float64(n)/float64(c.s.cfg.TransferMin)*float64(time.Second))
	return time.Now().Add(d).UnixNano()
}

// send writes one reply to the connection, or to what gathers for it, and gives it back.
func (c *conn) send(reply *frame.Reply, to net.Conn) error {
	if to == c.nc {
		c.writeDeadline.Store(c.transferDeadline(reply.Len()))
	}
	err := reply.Send(to, c.s.cfg.Reply)
	c.writeDeadline.Store(0)
	reply.Release()
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	c.touch()
	return nil
}
