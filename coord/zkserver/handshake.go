package zkserver

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"platter/coord/tree"
	"platter/coord/zk"
	ioconn "platter/io/conn"
)

// handshakeTime is how long a peer may take for its first frame.
const handshakeTime = 10 * time.Second

// handshake reads the connect request and gives the connection its session, new or re-attached. With
// neither session nor error the connection has had its answer and ends.
func (s *Server) handshake(c *conn, nc net.Conn, r *ioconn.FrameReader) error {
	if err := nc.SetReadDeadline(time.Now().Add(handshakeTime)); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	word, err := r.Peek()
	if err != nil {
		if err == io.EOF {
			return err
		}
		return fmt.Errorf("handshake: %w", err)
	}
	s.stats.received.Add(1) // words count too
	c.received.Add(1)
	if s.fourLetter(c, string(word), r.ReadRaw) {
		return nil
	}
	frame, err := r.Next()
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	defer frame.Release()
	d := zk.NewDecoder(frame.B)
	var q zk.ConnectRequest
	if q.Decode(&d); d.Err() != nil {
		return fmt.Errorf("connect request of %d bytes: %w", len(frame.B), d.Err())
	}
	if err := nc.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if zxid := s.zxid(); q.LastZxidSeen > zxid {
		return fmt.Errorf("client has seen zxid %#x, this server is at %#x", q.LastZxidSeen, zxid)
	}
	timeoutMs := s.negotiate(q.TimeoutMs)
	if q.SessionID == 0 {
		return s.openSession(c, &q, timeoutMs)
	}
	x, ok := s.sessions.attach(q.SessionID, q.Password, timeoutMs, c)
	if !ok {
		s.log.Info("coordinator: session refused: expired, or a wrong password",
			"session", fmt.Sprintf("%#x", q.SessionID), "peer", c.peer)
		c.connected(&q, nil)
		c.finish()
		return nil
	}
	c.session = x
	if err := s.awaitSettled(c); err != nil {
		return err
	}
	c.connected(&q, x)
	return nil
}

// awaitSettled waits until the writes of the session's earlier connection are over: whoever comes back looks at once
// what has become of them.
func (s *Server) awaitSettled(c *conn) error {
	if c.session.pending.Load() == 0 {
		return nil
	}
	c.committing.Store(true) // it is not the client's time
	defer c.committing.Store(false)
	select {
	case <-c.session.whenSettled():
		s.sessions.touch(c.session)
		return nil
	case <-s.stop:
		return ErrClosed
	}
}

var errNoSession = errors.New("no new session: the log has no room for it")

// openSession makes a new session and waits until it is durable.
func (s *Server) openSession(c *conn, q *zk.ConnectRequest, timeoutMs int32) error {
	password := make([]byte, zk.PasswordBytes)
	rand.Read(password)
	id := s.sessions.nextID()
	opened := make(chan *session, 1)
	ok, _ := s.queue.add(&proposal{
		entry: tree.Entry{
			Session: id, Op: zk.OpCreateSession,
			Body: tree.SessionBody{TimeoutMs: timeoutMs, Password: password}.Append(nil),
		},
		done: func(r tree.Result) {
			if r.Err != zk.OK {
				opened <- nil
				return
			}
			opened <- s.sessions.add(id, password, timeoutMs, c)
		},
	}, false)
	if !ok {
		return ErrClosed
	}
	select {
	case c.session = <-opened:
		if c.session == nil {
			return errNoSession
		}
	case <-s.stop:
		return ErrClosed
	}
	c.connected(q, c.session)
	return nil
}

// connected answers the connect request; without a session it says that there is none.
func (c *conn) connected(q *zk.ConnectRequest, x *session) {
	r := zk.ConnectResponse{Password: make([]byte, zk.PasswordBytes), HasReadOnly: q.HasReadOnly}
	if x != nil {
		r.TimeoutMs, r.SessionID, r.Password = x.timeoutMs.Load(), x.id, x.password
		c.attached.Store(x)
		now := x.heardMs.Load()
		c.note(zk.OpCreateSession, 0, c.server.zxid(), now, now)
	}
	c.frame(r.Append)
}

func samePassword(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// negotiate clamps a requested timeout.
func (s *Server) negotiate(askedMs int32) int32 {
	return int32(min(max(int(askedMs), s.config.MinSessionMs), s.config.MaxSessionMs))
}
