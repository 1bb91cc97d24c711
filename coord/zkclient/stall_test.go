package zkclient

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"platter/coord/zk"
)

// script is a server whose behaviour a test writes: serve is called for each connection after the handshake,
// with its number from 1; the connection is closed when it returns. Between client and server nothing is
// buffered: who does not read stops the other's writes.
type script struct {
	firstMs int32 // the session timeout that the first connection is given; all others, and 0: 60,000
	expired int   // from this connection on the session has expired; 0: never
	serve   func(n int, nc *scriptConn)

	mu    sync.Mutex
	conns int
}

func (s *script) dial(context.Context, string) (Conn, error) {
	ours, theirs := net.Pipe()
	s.mu.Lock()
	s.conns++
	n := s.conns
	s.mu.Unlock()
	go func() {
		defer theirs.Close()
		nc := &scriptConn{Conn: theirs, r: bufio.NewReader(theirs)}
		if _, err := nc.frame(); err != nil {
			return
		}
		answer := zk.ConnectResponse{TimeoutMs: 60_000, SessionID: 7, Password: make([]byte, 16)}
		if n == 1 && s.firstMs > 0 {
			answer.TimeoutMs = s.firstMs
		}
		if s.expired > 0 && n >= s.expired {
			answer.SessionID = 0
		}
		nc.Write(zk.AppendFrame(nil, answer.Append))
		s.serve(n, nc)
	}()
	return pipeConn{ours}, nil
}

// pipeConn takes a deadline also when the other end is closed, as a socket does.
type pipeConn struct{ net.Conn }

func (c pipeConn) SetDeadline(t time.Time) error {
	_ = c.Conn.SetDeadline(t)
	return nil
}

func (s *script) dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

type scriptConn struct {
	net.Conn
	r *bufio.Reader
}

func (nc *scriptConn) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(nc.r, head[:]); err != nil {
		return nil, err
	}
	d := zk.NewDecoder(head[:])
	body := make([]byte, d.Int32())
	_, err := io.ReadFull(nc.r, body)
	return body, err
}

// next is the next request's header and record; pings are answered and passed over.
func (nc *scriptConn) next() (q zk.RequestHeader, record []byte, err error) {
	for {
		body, err := nc.frame()
		if err != nil {
			return q, nil, err
		}
		d := zk.NewDecoder(body)
		if q.Decode(&d); q.Op != zk.OpPing {
			return q, body[8:], d.Err()
		}
		nc.reply(zk.XidPing, 0, zk.OK, nil)
	}
}

func (nc *scriptConn) reply(xid int32, zxid int64, code zk.Code, record func([]byte) []byte) {
	nc.Write(zk.AppendFrame(nil, func(b []byte) []byte {
		b = zk.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}.Append(b)
		if record != nil {
			b = record(b)
		}
		return b
	}))
}

// behave answers every request with zxid, as exists is answered.
func (nc *scriptConn) behave(zxid int64) {
	for {
		q, _, err := nc.next()
		if err != nil {
			return
		}
		nc.reply(q.Xid, zxid, zk.OK, (&zk.Stat{Version: 5}).Append)
	}
}

// connectTo gives a client of a scripted server.
func connectTo(t *testing.T, s *script, c Config) *Client {
	t.Helper()
	c.Dial = s.dial
	if c.Servers == nil {
		c.Servers = []string{"scripted"}
	}
	cl, err := Connect(within(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Drop)
	return cl
}

// TestSilenceBehindFullBuffers: a server that takes no byte any more is given up, also when it is the ping that it
// does not take.
func TestSilenceBehindFullBuffers(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	states := make(chan State, 20)
	c := connectTo(t, &script{firstMs: 300, serve: func(n int, nc *scriptConn) {
		if n == 1 {
			<-hold
		}
		nc.behave(1)
	}}, Config{OnState: func(s State) { states <- s }})
	expect(t, states, Connected)
	expect(t, states, Disconnected)
	expect(t, states, Reconnected)
	must(c.Exists(within(t), "/", nil))(t)
}

// TestCallerBehindFullBuffers: a request ends with its context, wherever its bytes are.
func TestCallerBehindFullBuffers(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	c := connectTo(t, &script{serve: func(int, *scriptConn) { <-hold }}, Config{})
	for range 3 {
		ctx, cancel := context.WithTimeout(within(t), 20*time.Millisecond)
		_, err := c.Exists(ctx, "/", nil)
		cancel()
		wantErr(t, err, context.DeadlineExceeded)
	}
}

// TestLongReplyIsNoSilence: the bytes of a reply are signs of life before it is whole.
func TestLongReplyIsNoSilence(t *testing.T) {
	ours, theirs := net.Pipe()
	l := newLink(ours)
	ended := make(chan error, 1)
	go func() {
		_, err := l.read()
		ended <- err
	}()
	theirs.SetWriteDeadline(time.Now().Add(60 * time.Second))
	theirs.Write([]byte{0, 1, 0, 0})
	for l.heard.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	began := l.heard.Load()
	for range 60_000 {
		if l.heard.Load() > began {
			break
		}
		if _, err := theirs.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if l.heard.Load() == began {
		t.Error("a reply's bytes count as silence until it is whole")
	}
	theirs.Close()
	if err := <-ended; err == nil {
		t.Error("half a reply was read as one")
	}
}
