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
)

// request is one decoded frame after the handshake. The body is borrowed from the frame.
type request struct {
	zk.RequestHeader
	body []byte
	who  []zk.ID // whom the client had authenticated as
	atMs int64   // tracker time of its arrival
	// answerBytes is the length of the answer, about; of a read that waits.
	answerBytes int64
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
		go s.serve(c)
	}
}

// serve is one connection's reader from its first byte to its end.
func (s *Server) serve(c *conn) {
	defer s.running.Done()
	err := s.serveFrames(c)
	c.abandon()
	s.watches.Remove(c)
	if c.session != nil {
		s.sessions.detach(c.session, c)
	}
	c.flush()
	c.close()
	s.conns.remove(c)
	s.stats.dropped.Add(1)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.log.Info("coordinator: connection ended", "peer", c.nc.RemoteAddr(), "err", err)
	}
}

func (s *Server) serveFrames(c *conn) error {
	r := s.newFrameReader(c.nc)
	if err := s.handshake(c, r); err != nil || c.session == nil {
		return err
	}
	for {
		if !r.Ready() {
			c.flush()
		}
		frame, err := r.Next()
		if err != nil {
			return err
		}
		s.stats.received.Add(1)
		s.stats.bytesReceived.Add(int64(len(frame.B)) + 4)
		c.received.Add(1)
		isPing := len(frame.B) == 8 && zk.Op(binary.BigEndian.Uint32(frame.B[4:])) == zk.OpPing
		err = s.dispatch(c, frame.B, s.sessions.touch(c.session), !r.Ready())
		frame.Release()
		if err != nil {
			return err
		}
		if !isPing { // a client that is slow to read its events is heard of meanwhile
			c.flushFull()
		}
	}
}

var errNoToken = errors.New("a SASL request without a token")

// dispatch answers one request, or queues it. last: no other one has come behind it yet.
func (s *Server) dispatch(c *conn, frame []byte, atMs int64, last bool) error {
	d := zk.NewDecoder(frame)
	q := request{atMs: atMs}
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
		return s.propose(c, &q, last)
	case c.pushRead(&q):
		return nil
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

// propose hands a write to the committer, which with lead may be the caller.
func (s *Server) propose(c *conn, q *request, lead bool) error {
	c.pushWrite()
	p := &proposal{entry: s.entry(c.session.id, q), conn: c, xid: q.Xid, atMs: q.atMs}
	ok, leads := s.queue.add(p, lead && s.store.quick.Load())
	if !ok {
		return ErrClosed
	}
	if leads {
		c.committing.Store(true)
		defer c.committing.Store(false)
		if !s.commit(c) {
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
