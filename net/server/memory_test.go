package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	ioconn "platter/io/conn"
	"platter/net/frame"
)

// announced is what each peer of the test says that it will send.
const announced = 100 << 20

func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	const peers = 1000
	h := newScript()
	s, dial, _ := start(t, h, nil)
	prefix := binary.BigEndian.AppendUint32(nil, announced)
	for range peers {
		nc := dial()
		send(t, nc, append(prefix, 0, 0))
	}
	eventually(t, "all peers are in a frame", func() bool {
		n := 0
		for _, c := range s.list() {
			if c.readDeadline.Load() != 0 {
				n++
			}
		}
		return n == peers
	})
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if got := m.HeapInuse + m.StackInuse; got > 300<<20 {
		t.Fatalf("%d peers that send nothing hold %d MiB", peers, got>>20)
	}
	nc := dial()
	send(t, nc, request(1, 1))
	expect(t, nc, 1)
}

func TestLargeFramesArriveWhole(t *testing.T) {
	h := newScript()
	var got []byte
	h.produce = func(r *Request) { got = bytes.Clone(r.Body); r.Answer(echo(r), nil) }
	_, dial, _ := start(t, h, nil)
	nc := dial()
	for _, size := range []int{0, 1, aheadBytes - 8, aheadBytes, ioconn.FirstBytes, ioconn.FirstBytes + 1, 3 << 20, 40 << 20, 100} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(i * 7)
		}
		go nc.Write(request(0, int32(size), body...))
		expect(t, nc, int32(size))
		if !bytes.Equal(got, body) {
			t.Fatalf("a body of %d bytes came as another of %d", size, len(got))
		}
	}
}

func TestManyLargeFramesShareTheBudget(t *testing.T) {
	h := newScript()
	h.produce = func(r *Request) { r.Answer(echo(r), nil) }
	s, dial, _ := start(t, h, func(c *Config) { c.QueuedRequestBytesMax = 4 << 20 })
	const peers = 16
	conns := make([]net.Conn, peers)
	whole := request(0, 1, make([]byte, 3<<20)...)
	for i := range conns {
		conns[i] = dial()
		go conns[i].Write(whole)
	}
	for _, nc := range conns {
		expect(t, nc, 1)
	}
	eventually(t, "all memory is given back", func() bool { return s.pool.Usage().Used == 0 })
}

// TestNobodyKeepsTheMemory lets some peers fill the budget and stop there, in the middle of a frame and
// behind a long poll: the others get on.
func TestNobodyKeepsTheMemory(t *testing.T) {
	h := newScript()
	h.produce = func(r *Request) { r.Answer(echo(r), nil) }
	h.serve = func(ctx context.Context, r *Request) (*frame.Reply, error) { <-ctx.Done(); return nil, ctx.Err() }
	s, dial, log := start(t, h, func(c *Config) { c.QueuedRequestBytesMax = 4 << 20; c.starvedMax = 300 * time.Millisecond })
	whole := request(0, 1, make([]byte, 1<<20)...)
	for range 3 {
		go dial().Write(whole[:len(whole)-1])
	}
	behind := dial()
	go func() {
		behind.Write(request(1, 1))
		for range 3 {
			behind.Write(whole)
		}
	}()
	eventually(t, "the budget is used up", func() bool { return s.pool.Usage().Used > 3<<20 })
	for range 8 {
		nc := dial()
		go nc.Write(whole)
		expect(t, nc, 1)
	}
	if !strings.Contains(log.String(), ErrStarving.Error()) {
		t.Error("the log does not say who was ended")
	}
}

// TestAThousandKeepTheMemory: each of them takes little and stops there, and all together keep everything.
func TestAThousandKeepTheMemory(t *testing.T) {
	h := newScript()
	h.produce = func(r *Request) { r.Answer(echo(r), nil) }
	s, dial, _ := start(t, h, func(c *Config) { c.QueuedRequestBytesMax = 8 << 20; c.starvedMax = 300 * time.Millisecond })
	whole := request(0, 1, make([]byte, 1<<20)...)
	for range 1000 {
		go dial().Write(whole[:40<<10])
	}
	eventually(t, "the budget is used up", func() bool { return s.pool.Usage().Waiting > 0 })
	nc := dial()
	go nc.Write(request(0, 1, make([]byte, 32<<10)...)) // it waits for memory, and never keeps any for long
	expect(t, nc, 1)
}
