package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"testing"
	"time"
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
	for _, size := range []int{0, 1, aheadBytes - 8, aheadBytes, firstBytes, firstBytes + 1, 3 << 20, 40 << 20, 100} {
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

func TestBudget(t *testing.T) {
	g := newBudget(100 << 10)
	ctx := context.Background()
	a, _ := g.buffer(ctx, 64<<10)
	over, _ := g.buffer(ctx, 64<<10) // the one that may go over
	if !over.over || a.over {
		t.Fatal("the second buffer should be the overdraft")
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := g.buffer(short, 4<<10); err == nil {
		t.Fatal("a third buffer went over the budget")
	}
	got := make(chan *buffer)
	go func() { b, _ := g.buffer(ctx, 4<<10); got <- b }()
	if err := over.grow(ctx, 1<<20); err != nil { // it may go on to be whole
		t.Fatal(err)
	}
	over.free()
	b := <-got
	a.free()
	b.free()
	if g.used != 0 || g.overdrawn {
		t.Fatalf("%d bytes are still held, overdrawn %v", g.used, g.overdrawn)
	}
}

func TestManyLargeFramesShareTheBudget(t *testing.T) {
	h := newScript()
	h.produce = func(r *Request) { r.Answer(echo(r), nil) }
	s, dial, _ := start(t, h, func(c *Config) { c.QueuedRequestBytesMax = 4 << 20 })
	const peers = 16
	conns := make([]net.Conn, peers)
	frame := request(0, 1, make([]byte, 3<<20)...)
	for i := range conns {
		conns[i] = dial()
		go conns[i].Write(frame)
	}
	for _, nc := range conns {
		expect(t, nc, 1)
	}
	eventually(t, "all memory is given back", func() bool {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		return s.budget.used == 0
	})
}
