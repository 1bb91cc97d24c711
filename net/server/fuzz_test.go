package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"platter/net/frame"
)

// FuzzFrames sends any bytes to a connection: what comes out as frames is what a simple reader finds,
// and all memory comes back.
func FuzzFrames(f *testing.F) {
	f.Add(request(0, 1), uint16(3))
	f.Add(append(request(0, 1, 1, 2, 3), request(1, 2, make([]byte, 9000)...)...), uint16(4096))
	f.Add(request(1, 1)[:9], uint16(1))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1}, uint16(2))
	f.Add([]byte{0, 0, 0, 0}, uint16(2))
	f.Add([]byte{0x16, 3, 1, 2, 0, 1, 0, 1}, uint16(100))
	f.Fuzz(func(t *testing.T, p []byte, piece uint16) {
		const most = 1 << 20
		got := make(chan []byte, 1+len(p)/headerBytesMin)
		h := newScript()
		h.moved = make(chan struct{}, 1+len(p)/headerBytesMin)
		h.produce = func(r *Request) { got <- bytes.Clone(r.Body); r.Answer(nil, nil) }
		h.serve = func(_ context.Context, r *Request) (*frame.Reply, error) {
			got <- bytes.Clone(r.Body)
			return echo(r), nil
		}
		ours, theirs := net.Pipe()
		s, err := New(Config{Listeners: []Listener{{"T", &oneConn{conn: ours, done: make(chan struct{})}}}, Handler: h, RequestBytesMax: most, DrainMax: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		go io.Copy(io.Discard, theirs)
		for rest := p; len(rest) > 0; {
			n := min(len(rest), max(1+int(piece), len(p)/100)) // not too many pieces
			if _, err := theirs.Write(rest[:n]); err != nil {
				break // refused already
			}
			rest = rest[n:]
		}
		theirs.Close()
		eventually(t, "the connection ends with its peer", func() bool { return len(s.list()) == 0 })
		s.Close(context.Background())
		close(got)
		if u := s.pool.Usage(); u.Used != 0 {
			t.Fatalf("%d bytes are still held", u.Used)
		}
		for body := range got {
			want, rest, ok := nextFrame(p, most)
			if !ok || !bytes.Equal(body, want[8:]) {
				t.Fatalf("a frame with % x came, due was % x", body, want)
			}
			p = rest
		}
	})
}

// nextFrame is the simple reader.
func nextFrame(p []byte, most int) (frame, rest []byte, ok bool) {
	if len(p) < 4 {
		return nil, nil, false
	}
	n := int(int32(binary.BigEndian.Uint32(p)))
	if n < headerBytesMin || n > most || len(p) < 4+n {
		return nil, nil, false
	}
	return p[4 : 4+n], p[4+n:], true
}

// oneConn is a listener that gives one connection.
type oneConn struct {
	conn net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { close(l.done); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
