package zkserver

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"platter/coord/zk"
	"platter/io/buf"
	"platter/io/clock"
	ioconn "platter/io/conn"
)

// longAnswer is more than the buffers of a socket take, as they are set by default.
const longAnswer = 20 << 20

// slowPeer is one that gets long answers, and whose kernel takes little of them ahead.
func slowPeer(t *testing.T, s *Server) *peer {
	t.Helper()
	p := dialPeer(t, s.Addr())
	if err := p.nc.(*net.TCPConn).SetReadBuffer(256 << 10); err != nil {
		t.Fatal(err)
	}
	p.frames = ioconn.NewFrameReader(t.Context(), p.nc, ioconn.FrameConfig{Pool: buf.New(64 << 20), BytesMax: 2 * longAnswer})
	return p
}

// withLongNode is a server in virtual time that has a node /long with a long answer's bytes, and who made it.
func withLongNode(t *testing.T, c Config) (*Server, *clock.Virtual, *peer) {
	t.Helper()
	now := clock.NewVirtual(clock.Real{}.Now())
	c.Clock, c.FrameBytesMax, c.FourLetterWords = now, 2*longAnswer, []string{"*"}
	s, _ := held(t, c)
	p := open(t, s, 40_000)
	if h, _ := p.call(t, zk.OpCreate, createBody("/long", make([]byte, longAnswer), 0)); h.Err != zk.OK {
		t.Fatal(h)
	}
	return s, now, p
}

// TestWhoLeavesWithoutReading: a client that sends, ends and reads nothing costs a connection for a while only.
func TestWhoLeavesWithoutReading(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, now, p := withLongNode(t, c)
		for i := range 20 { // what a word tells of
			p.call(t, zk.OpExists, pathBody(fmt.Sprint("/", strings.Repeat("x", longAnswer/20), i), true))
		}
		deaf, word := slowPeer(t, s), slowPeer(t, s)
		if r, err := deaf.connect(zk.ConnectRequest{TimeoutMs: 40_000}); err != nil || r.SessionID == 0 {
			t.Fatal(r, err)
		}
		deaf.nc.Write(deaf.frame(zk.OpGetData, pathBody("/long", false)))
		deaf.nc.(*net.TCPConn).CloseWrite()
		word.nc.Write([]byte("wchp"))
		eventually(t, func() bool {
			now.Advance(time.Second)
			return s.conns.count() == 0
		})
	})
}

// TestSlowReaderLives: a client that takes a long answer slowly keeps its session, though nobody comes to its pings.
func TestSlowReaderLives(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, now, _ := withLongNode(t, c)
		slow := slowPeer(t, s)
		if r, err := slow.connect(zk.ConnectRequest{TimeoutMs: 10_000}); err != nil || r.SessionID == 0 {
			t.Fatal(r, err)
		}
		session := connOf(s, slow.id).attached.Load()
		get := slow.frame(zk.OpGetData, pathBody("/long", false))
		slow.nc.Write(append(get, get...))
		part := make([]byte, 64<<10)
		for range 5 {
			now.Advance(4 * time.Second)
			slow.nc.Write(slow.frame(zk.OpPing, nil))
			for session.heardMs.Load() < s.sessions.nowMs() { // what is read makes room, which the server fills
				if _, err := io.ReadFull(slow.nc, part); err != nil {
					t.Fatal(err)
				}
			}
		}
		go io.Copy(io.Discard, slow.nc)
		eventually(t, func() bool { return connOf(s, slow.id) != nil && !connOf(s, slow.id).readerWaits.Load() })
	})
}
