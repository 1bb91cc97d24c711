package zkserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"platter/coord/tree"
	"platter/coord/zk"
	ioconn "platter/io/conn"
)

// request is one decoded frame after the handshake. The body is borrowed from the frame.
type request struct {
	zk.RequestHeader
	body []byte
	who  []zk.ID // whom the client had authenticated as
	atMs int64   // tracker time of its arrival
	// heldBytes is what a read that waits holds: its body and the answer, about.
	heldBytes int64
}

// acceptLoop takes the connections that the limits let in, until the listener is closed.
func (s *Server) acceptLoop() {
	defer s.running.Done()
	for {
		nc, err := s.ln.Accept()
		if err != nil {
			return // closed
		}
		c := newConn(nc, s)
		s.stats.requests.Add(1)
		if !s.conns.add(c) {
			nc.Close()
			return
		}
		s.running.Add(1)
		go s.serve(c, nc)
	}
}

// serve is one connection's reader from its first byte to its end, or until the poller takes it over.
func (s *Server) serve(c *conn, nc net.Conn) {
	r := s.newFrameReader(c, nil)
	if err := s.handshake(c, nc, r); err != nil || c.session == nil {
		s.leave(c, err)
		return
	}
	if c.poller != nil {
		c.poller.adopt(c, nc)
	}
	s.serveFrames(c, r)
}

// leave is a connection's end, of which its reader has learned.
func (s *Server) leave(c *conn, err error) {
	defer s.running.Done()
	c.abandon()
	s.watches.Remove(c)
	c.drain()
	if c.session != nil { // what ends the session, or takes it over, ends the draining
		s.sessions.detach(c.session, c)
	}
	s.conns.remove(c)
	s.stats.dropped.Add(1)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.log.Info("coordinator: connection ended", "peer", c.peer, "err", err)
	}
	c.free()
}

// serveFrames reads until the end, or until the poller can go on.
func (s *Server) serveFrames(c *conn, r *ioconn.FrameReader) {
	for {
		if !r.Ready() {
			c.flush()
			if c.sock != nil && r.Empty() && c.sock.Arm() == nil {
				return // the reader is the poller now
			}
		}
		frame, err := r.Next()
		if err == nil {
			err = s.take(c, frame.B, !r.Ready())
			frame.Release()
		}
		if err != nil {
			s.leave(c, err)
			return
		}
	}
}

func isPing(frame []byte) bool {
	return len(frame) == 8 && zk.Op(binary.BigEndian.Uint32(frame[4:])) == zk.OpPing
}

// take takes one frame of a connection's own goroutine.
func (s *Server) take(c *conn, frame []byte, last bool) error {
	s.heard(c, frame)
	err := s.dispatch(c, frame, func(p *proposal) error { return s.propose(p, last) })
	if err == nil && !isPing(frame) { // a client that is slow to read its events is heard of meanwhile
		c.flushFull()
	}
	return err
}

func (s *Server) heard(c *conn, frame []byte) {
	s.stats.received.Add(1)
	s.stats.bytesReceived.Add(int64(len(frame)) + 4)
	c.received.Add(1)
}

var errNoToken = errors.New("a SASL request without a token")

// dispatch answers one request, or queues it; a write is given to propose. Without propose it does not wait: the
// write is the poller's, and what cannot be taken at once is errBusy, and untouched. Once the connection has ended,
// what it still brings is refused, and is no sign of life.
func (s *Server) dispatch(c *conn, frame []byte, propose func(*proposal) error) error {
	if c.ended.Load() {
		return net.ErrClosed
	}
	d := zk.NewDecoder(frame)
	q := request{atMs: s.sessions.touch(c.session)}
	q.Decode(&d)
	if d.Err() != nil {
		return fmt.Errorf("request header of %d bytes: %w", len(frame), d.Err())
	}
	q.body, q.who = d.Rest(), c.identities()
	switch {
	case q.Op == zk.OpAuth:
		return s.authenticate(c, &q)
	case q.Op == zk.OpSASL:
		// Without SASL the real server answers any token with none, and falls over a request without one.
		if token := d.Buffer(); token == nil {
			return errNoToken
		}
		c.reply(zk.ReplyHeader{Xid: q.Xid}, func(b []byte) []byte { return zk.AppendBuffer(b, nil) })
		return nil
	case isWrite(&q):
		return s.write(c, &q, propose)
	}
	if queued, err := c.pushRead(&q, propose != nil); queued || err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.answerRead(c, &q)
	return nil
}

// answerRead answers a read, and notes that it did. The tree is locked, at least for reading.
func (s *Server) answerRead(c *conn, q *request) {
	s.read(c, q)
	nowMs := s.sessions.nowMs()
	s.stats.read(nowMs - q.atMs)
	c.note(q.Op, q.Xid, s.tree.Zxid(), nowMs, q.atMs)
}

// isWrite reports whether a request takes a zxid: it changes the tree, or the real server thinks so.
func isWrite(q *request) bool {
	switch q.Op {
	case zk.OpCreate, zk.OpCreate2, zk.OpCreateContainer, zk.OpCreateTTL, zk.OpDelete, zk.OpDeleteContainer,
		zk.OpSetData, zk.OpSetACL, zk.OpCheck, zk.OpMulti, zk.OpCloseSession:
		return true
	case zk.OpReconfig:
		d := zk.NewDecoder(q.body)
		var r zk.ReconfigRequest
		r.Decode(&d)
		return d.Err() == nil
	}
	return false
}

func (s *Server) zxid() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tree.Zxid()
}

// write makes a proposal of a write.
func (s *Server) write(c *conn, q *request, propose func(*proposal) error) error {
	if err := c.pushWrite(propose != nil); err != nil {
		return err
	}
	p := &proposal{entry: s.entry(c.session.id, q), conn: c, xid: q.Xid, atMs: q.atMs}
	if p.entry.Op == zk.OpCloseSession {
		s.closes(p)
	}
	if propose == nil {
		c.poller.writes = append(c.poller.writes, p)
		return nil
	}
	return propose(p)
}

// closes makes a session close; with the first word of it nobody can attach to it any more
// (PrepRequestProcessor.setSessionClosing).
func (s *Server) closes(p *proposal) {
	s.sessions.closes(p.conn.session)
	p.done = func(r tree.Result) {
		if r.Err != zk.OK {
			s.sessions.revive(p.entry.Session)
		}
	}
}

// propose hands a write to the committer, which with lead may be the caller.
func (s *Server) propose(p *proposal, lead bool) error {
	ok, leads := s.queue.add(p, lead && s.store.quick.Load())
	if !ok {
		return ErrClosed
	}
	if leads {
		p.conn.committing.Store(true)
		defer p.conn.committing.Store(false)
		if !s.commit(p.conn) {
			return s.Err()
		}
		s.queue.passOn()
	}
	return nil
}

// entry is what a write becomes. One that cannot be done is an entry too: it takes a zxid.
func (s *Server) entry(session int64, q *request) tree.Entry {
	e := tree.Entry{Session: session, Op: q.Op, Options: s.config.options(), Auth: q.who}
	failed := zk.OK
	switch {
	case q.Op == zk.OpReconfig:
		failed = zk.ReconfigDisabled
		if s.config.ReconfigEnabled {
			failed = zk.Unimplemented // as whoever stands alone
		}
	case q.Op == zk.OpDeleteContainer: // the server's own
		failed = zk.BadArguments
	case tree.CheckBody(q.Op, q.body) != nil:
		failed = zk.Marshalling
	}
	if failed != zk.OK {
		e.Op, e.Body, e.Auth = zk.OpError, tree.FailedBody(failed), nil
		return e
	}
	e.Body = bytes.Clone(q.body)
	return e
}
