package zkserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"platter/coord/tree"
	"platter/coord/zk"
	ioconn "platter/io/conn"
)

const (
	// outstandingMax bounds a connection's requests that wait for the committer.
	outstandingMax = 1000
	// outBytesSoft makes the reader send before it goes on; outBytesMax, which only events and reads
	// behind writes can reach, ends a connection whose client does not read. One answer alone may be longer
	// (answerBytesMax).
	outBytesSoft = 64 << 10
	outBytesMax  = 32 << 20
	// backlogBytesMin is from where on a connection's output counts as a backlog; together they may be
	// backlogBytesMax, or the one that grows is closed.
	backlogBytesMin = outBytesSoft
	backlogBytesMax = 128 << 20
	// heldBytesMax bounds how long a connection's waiting reads and the answers to them may be together: the committer
	// puts these all into the output at once. heldBodiesMax bounds all connections' waiting reads.
	heldBytesMax  = 1 << 20
	heldBodiesMax = 32 << 20
	// outBytesKept is the largest output buffer that an idle connection keeps.
	outBytesKept = 16 << 10
)

// conn is one client's connection.
type conn struct {
	server  *Server
	peer    net.Addr
	nc      io.ReadWriteCloser
	try     func([]byte) (int, error) // sends what there is room for; nil: it cannot be asked without waiting
	poller  *poller                   // nil: it has a goroutine of its own all its life
	sock    *ioconn.Socket            // the reader's; nil: not with the poller yet
	stats   *stats
	session *session // the reader's; set once the handshake is done
	touched bool     // the committer's own: has output that was not sent yet
	who     atomic.Pointer[[]zk.ID]
	sinceMs int64 // Unix milliseconds

	ended       atomic.Bool             // no request is taken any more: it is closed, or will be when out is sent
	committing  atomic.Bool             // the reader waits for a commit: it hears nothing of its client meanwhile
	readerWaits atomic.Bool             // nor does it while it waits until output is sent
	attached    atomic.Pointer[session] // what session is, for everybody else

	received atomic.Int64

	qmu   sync.Mutex
	qroom sync.Cond
	queue []*request // nil: a write that is under way; else a read that waits for the one before it
	held  int64      // heldBytes of the reads in it
	dead  bool       // nobody reads any more: the queue is empty and stays so

	omu      sync.Mutex
	taken    sync.Cond // of the reader: out went to somebody who sends it, or the sender is done, or the end
	out      []byte    // frames to send
	counted  int64     // of out, in the server's backlog
	sending  int64     // of what is being sent, in the backlog too
	spare    []byte
	flushing bool // somebody sends: out is theirs to take
	last     bool // close once out is sent
	closed   bool
	talk     talk // what cons tells
}

func newConn(nc net.Conn, s *Server) *conn {
	c := &conn{nc: nc, peer: nc.RemoteAddr(), stats: &s.stats, server: s, sinceMs: s.config.Clock.NowMs()}
	if w := ioconn.NewTryWriter(nc); w != nil {
		c.try = w.Try
	}
	c.poller = s.pollerOf()
	c.qroom.L, c.taken.L = &c.qmu, &c.omu
	c.who.Store(s.firstIdentities(nc))
	return c
}

// errBusy: a request cannot be taken without waiting.
var errBusy = errors.New("too many requests are under way")

// Read is the reader's.
func (c *conn) Read(p []byte) (int, error) { return c.nc.Read(p) }

// pushWrite queues a write, which the session counts as pending from here on; while too many are outstanding it waits,
// or says errBusy.
func (c *conn) pushWrite(wait bool) error {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	for c.full(0) {
		if !wait {
			return errBusy
		}
		c.qroom.Wait()
	}
	if c.dead {
		return net.ErrClosed
	}
	c.queue = append(c.queue, nil)
	c.server.outstanding.Add(1)
	c.session.pending.Add(1)
	return nil
}

// pushRead queues a read behind the write that is under way. False: there is none, and the caller, the
// only one who adds to the queue, answers at once. Without room it waits, or says errBusy.
func (c *conn) pushRead(q *request, wait bool) (queued bool, err error) {
	if !c.writes() {
		return false, nil
	}
	q.heldBytes = c.server.answerBytes(q) + int64(len(q.body))
	c.qmu.Lock()
	defer c.qmu.Unlock()
	for len(c.queue) > 0 && (c.full(q.heldBytes) || !c.server.hold(q)) {
		if !wait {
			return false, errBusy
		}
		c.qroom.Wait() // the write that it waits for, if nothing else, makes room
	}
	if len(c.queue) == 0 {
		return c.dead, nil
	}
	held := *q
	held.body = bytes.Clone(q.body)
	c.queue = append(c.queue, &held)
	c.held += q.heldBytes
	return true, nil
}

// hold takes room for the body of a read that is to wait; false: there is none.
func (s *Server) hold(q *request) bool {
	n := int64(len(q.body))
	if s.heldBodies.Add(n) <= heldBodiesMax {
		return true
	}
	s.heldBodies.Add(-n)
	return false
}

// writes reports whether a write is under way.
func (c *conn) writes() bool {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	return len(c.queue) > 0
}

// outstandingMax is how many requests of this connection may wait: one, while those of all are too many
// (globalOutstandingLimit).
func (c *conn) outstandingMax() int {
	if c.server.outstanding.Load() > int64(c.server.config.OutstandingLimit) {
		return 1
	}
	return outstandingMax
}

// full reports whether one more request, which holds so many bytes, must wait before it is queued. It is called with
// qmu held.
func (c *conn) full(heldBytes int64) bool {
	return !c.dead && (len(c.queue) >= c.outstandingMax() || c.held > 0 && c.held+heldBytes > heldBytesMax)
}

// committed answers the write at the head of the queue, then runs the reads behind it up to the next
// write. The tree is locked by the committer.
func (c *conn) committed(s *Server, p *proposal, r tree.Result) {
	c.session.settled()
	c.qmu.Lock()
	defer c.qmu.Unlock()
	if c.dead {
		return
	}
	s.outstanding.Add(-1)
	s.answerWrite(c, p, r)
	nowMs := s.sessions.nowMs()
	s.stats.wrote(nowMs - p.atMs)
	c.note(p.entry.Op, p.xid, p.entry.Zxid, nowMs, p.atMs)
	n := 1
	for n < len(c.queue) && c.queue[n] != nil {
		s.answerRead(c, c.queue[n])
		c.held -= c.queue[n].heldBytes
		s.heldBodies.Add(-int64(len(c.queue[n].body)))
		n++
	}
	rest := copy(c.queue, c.queue[n:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
	c.qroom.Signal()
}

// abandon ends the queue: what is still under way goes unanswered.
func (c *conn) abandon() {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	for _, q := range c.queue {
		if q == nil {
			c.server.outstanding.Add(-1)
		} else {
			c.server.heldBodies.Add(-int64(len(q.body)))
		}
	}
	c.dead, c.queue, c.held = true, nil, 0
	c.qroom.Signal()
}

// frame adds one frame to the output.
func (c *conn) frame(body func([]byte) []byte) {
	c.omu.Lock()
	defer c.omu.Unlock()
	if c.closed || c.last {
		return
	}
	c.stats.sent.Add(1)
	c.talk.sent++
	before := len(c.out)
	c.out = zk.AppendFrame(c.out, body)
	c.stats.replied(len(c.out) - before - 4)
	if len(c.out) > backlogBytesMin && c.overdrawn(before) {
		c.server.log.Warn("coordinator: connection closed: more answers than its client reads", "peer", c.peer, "bytes", len(c.out))
		c.closeLocked()
	}
}

func (c *conn) event(typ zk.EventType, path string) {
	c.frame(func(b []byte) []byte {
		b = zk.ReplyHeader{Xid: zk.XidEvent, Zxid: -1}.Append(b)
		return zk.WatcherEvent{Type: typ, State: zk.StateSyncConnected, Path: path}.Append(b)
	})
}

// header adds a reply without a record.
func (c *conn) header(xid int32, zxid int64, code zk.Code) {
	c.frame(func(b []byte) []byte { return zk.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}.Append(b) })
}

// finish lets what is in the output go out, then closes.
func (c *conn) finish() {
	c.omu.Lock()
	defer c.omu.Unlock()
	c.last = true
	c.ended.Store(true)
	if !c.flushing && len(c.out) == 0 {
		c.closeLocked()
	}
}

// flush sends the output on the caller's goroutine, unless somebody is at it already.
func (c *conn) flush() {
	c.omu.Lock()
	defer c.omu.Unlock()
	if !c.flushing {
		c.flushing = true
		c.readerWaits.Store(true)
		c.send(c.write)
		c.readerWaits.Store(false)
	}
}

// flushFull is the reader's, when there is much to send: it sends, or waits for whoever does.
func (c *conn) flushFull() {
	c.omu.Lock()
	defer c.omu.Unlock()
	if len(c.out) < outBytesSoft {
		return
	}
	c.readerWaits.Store(true)
	defer c.readerWaits.Store(false)
	for len(c.out) >= outBytesSoft && !c.closed {
		if c.flushing {
			c.taken.Wait()
			continue
		}
		c.flushing = true
		c.send(c.write)
	}
}

// sendOwnMax is for how many connections the committer sends itself: more would keep the next batch waiting.
const sendOwnMax = 64

// sendAll sends the output of many. The committer never waits for a client: who has no room is left to a goroutine
// of its own. A goroutine for each would cost more than what it sends; so few of them do it, when there are many.
func sendAll(conns []*conn) {
	if len(conns) <= sendOwnMax {
		for _, c := range conns {
			c.sendNow()
		}
		return
	}
	each := (len(conns) + runtime.NumCPU() - 1) / runtime.NumCPU()
	for chunk := range slices.Chunk(slices.Clone(conns), max(each, sendOwnMax)) {
		go func() {
			for _, c := range chunk {
				c.sendNow()
			}
		}()
	}
}

// sendNow sends what the client has room for, and leaves the rest to a goroutine.
func (c *conn) sendNow() {
	c.omu.Lock()
	defer c.omu.Unlock()
	if c.flushing || len(c.out) == 0 {
		return
	}
	c.flushing = true
	if c.try != nil && c.send(c.try) {
		return
	}
	go func() {
		c.omu.Lock()
		defer c.omu.Unlock()
		c.send(c.write)
	}()
}

// send is called and returns with omu held, and drops it while it writes. False: write took not all of
// it, and somebody must go on; it is still flushing.
func (c *conn) send(write func([]byte) (int, error)) bool {
	for len(c.out) > 0 && !c.closed {
		buf, counted := c.out, c.counted
		c.out, c.spare, c.counted, c.sending = c.spare[:0], nil, 0, counted
		c.taken.Signal()
		c.omu.Unlock()
		n, err := write(buf)
		c.omu.Lock()
		c.sending = 0
		if err == nil && n < len(buf) && !c.closed {
			c.out = append(buf[n:], c.out...)
			c.counted += counted
			return false
		}
		c.server.backlog.Add(-counted)
		switch {
		case err != nil:
			c.closeLocked()
		case cap(buf) <= outBytesKept:
			c.spare = buf[:0]
		}
	}
	c.flushing = false
	c.taken.Signal()
	if c.last {
		c.closeLocked()
	}
	return true
}

func (c *conn) close() {
	c.omu.Lock()
	defer c.omu.Unlock()
	c.closeLocked()
}

func (c *conn) closeLocked() {
	if !c.closed {
		c.closed, c.out = true, nil
		c.ended.Store(true)
		c.taken.Signal()
		c.server.backlog.Add(-c.counted)
		c.counted = 0
		c.nc.Close()
	}
}
