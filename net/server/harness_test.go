package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"platter/net/frame"
	"platter/net/wire"
)

// A test's requests: key 0 is a produce, everything else a barrier; the correlation id names the request.

// script is a Handler whose answers the test gives.
type script struct {
	mu       sync.Mutex
	produced []int32 // in the order handed over
	served   []int32
	pending  map[int32]*Request
	serve    func(ctx context.Context, r *Request) (*frame.Reply, error)
	produce  func(r *Request)
	moved    chan struct{} // one signal for each call
}

func newScript() *script {
	return &script{pending: map[int32]*Request{}, moved: make(chan struct{}, 1000)}
}

var errRefused = errors.New("refused by the handler")

func (s *script) Accept(p []byte) (wire.Header, []byte, bool, error) {
	h := wire.Header{Key: int16(binary.BigEndian.Uint16(p)), Version: 3, CorrelationID: int32(binary.BigEndian.Uint32(p[4:]))}
	if h.Key == 99 {
		return h, nil, false, errRefused
	}
	return h, p[8:], h.Key == 0, nil
}

func (s *script) Produce(r *Request) {
	s.mu.Lock()
	s.produced = append(s.produced, r.CorrelationID)
	s.pending[r.CorrelationID] = r
	f := s.produce
	s.mu.Unlock()
	if f != nil {
		f(r)
	}
	s.moved <- struct{}{}
}

func (s *script) Serve(ctx context.Context, r *Request) (*frame.Reply, error) {
	s.mu.Lock()
	s.served = append(s.served, r.CorrelationID)
	f := s.serve
	s.mu.Unlock()
	s.moved <- struct{}{}
	if f != nil {
		return f(ctx, r)
	}
	return echo(r), nil
}

func (s *script) answer(id int32) {
	s.mu.Lock()
	r := s.pending[id]
	delete(s.pending, id)
	s.mu.Unlock()
	r.Answer(echo(r), nil)
}

func (s *script) await(t *testing.T, calls int) {
	t.Helper()
	for range calls {
		select {
		case <-s.moved:
		case <-time.After(60 * time.Second):
			t.Fatal("the handler was not called")
		}
	}
}

func (s *script) counts() (produced, served int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.produced), len(s.served)
}

func echo(r *Request) *frame.Reply {
	reply := frame.New()
	reply.Bytes(binary.BigEndian.AppendUint32(nil, uint32(r.CorrelationID)))
	return reply
}

// logged is a log that the test reads.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a server over h; the returned function dials it.
func start(t testing.TB, h Handler, change func(*Config)) (s *Server, dial func() net.Conn, log *logged) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log = new(logged)
	c := Config{Listeners: []Listener{{"PLAINTEXT", l}}, Handler: h, DrainMax: 2 * time.Second,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&c)
	}
	if s, err = New(c); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Close(context.Background()) })
	return s, func() net.Conn {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		nc.SetDeadline(time.Now().Add(60 * time.Second))
		return nc
	}, log
}

func request(key int16, id int32, body ...byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	p = binary.BigEndian.AppendUint16(p, uint16(key))
	p = binary.BigEndian.AppendUint16(p, 3)
	p = binary.BigEndian.AppendUint32(p, uint32(id))
	return append(p, body...)
}

func send(t testing.TB, nc net.Conn, p []byte) {
	t.Helper()
	if _, err := nc.Write(p); err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, nc net.Conn, ids ...int32) {
	t.Helper()
	for _, want := range ids {
		var p [8]byte
		if _, err := io.ReadFull(nc, p[:]); err != nil {
			t.Fatalf("answer %d: %v", want, err)
		}
		if got := int32(binary.BigEndian.Uint32(p[4:])); got != want {
			t.Fatalf("answer %d came where %d was due", got, want)
		}
	}
}

func expectClosed(t *testing.T, nc net.Conn) {
	t.Helper()
	n, err := io.Copy(io.Discard, nc)
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		t.Fatal("the connection stays open")
	}
	if n > 0 {
		t.Fatalf("%d bytes came where the connection should end", n)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for i := range 2000 {
		if ok() {
			return
		}
		time.Sleep(time.Duration(min(i, 10)) * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}
