package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"platter/net/frame"
)

func TestAnswersGoOutInRequestOrder(t *testing.T) {
	h := newScript()
	_, dial, _ := start(t, h, nil)
	nc := dial()
	for id := range int32(3) {
		send(t, nc, request(0, id))
	}
	h.await(t, 3) // all three are with the handler before one is answered
	for id := int32(2); id >= 0; id-- {
		h.answer(id)
	}
	expect(t, nc, 0, 1, 2)
}

func TestAnyOtherRequestIsABarrier(t *testing.T) {
	h := newScript()
	release := make(chan struct{})
	h.serve = func(_ context.Context, r *Request) (*frame.Reply, error) { <-release; return echo(r), nil }
	_, dial, _ := start(t, h, nil)
	nc := dial()
	send(t, nc, bytes.Join([][]byte{request(0, 0), request(1, 1), request(0, 2), request(0, 3), request(1, 4), request(0, 5)}, nil))
	h.await(t, 1)
	if p, s := h.counts(); p != 1 || s != 0 {
		t.Fatalf("%d produces and %d others are handed over before the first is answered", p, s)
	}
	h.answer(0)
	h.await(t, 1)
	if p, s := h.counts(); p != 1 || s != 1 {
		t.Fatalf("%d produces and %d others are handed over while the barrier stands", p, s)
	}
	release <- struct{}{}
	h.await(t, 2)
	h.answer(3)
	h.answer(2)
	h.await(t, 1)
	release <- struct{}{}
	h.await(t, 1)
	h.answer(5)
	expect(t, nc, 0, 1, 2, 3, 4, 5)
	if got := h.produced; len(got) != 4 || got[1] != 2 || got[2] != 3 {
		t.Fatalf("produces were handed over as %v", got)
	}
}

func TestProduceWithoutAnswer(t *testing.T) {
	h := newScript()
	h.produce = func(r *Request) { r.Answer(nil, nil) }
	_, dial, _ := start(t, h, nil)
	nc := dial()
	send(t, nc, append(request(0, 1), request(1, 2)...))
	expect(t, nc, 2)
}

func TestALongPollEndsWithItsPeer(t *testing.T) {
	h := newScript()
	ended := make(chan struct{})
	h.serve = func(ctx context.Context, r *Request) (*frame.Reply, error) {
		<-ctx.Done()
		close(ended)
		return echo(r), nil
	}
	h.produce = func(r *Request) { context.AfterFunc(r.Gone(), func() { r.Answer(nil, nil) }) }
	s, dial, _ := start(t, h, nil)
	nc := dial()
	send(t, nc, append(request(1, 1), request(0, 2)...)) // what is queued behind does not hide the end
	h.await(t, 1)
	nc.Close()
	<-ended
	eventually(t, "the connection is forgotten", func() bool { return len(s.list()) == 0 })
	eventually(t, "all memory is given back", func() bool { return s.pool.Usage().Used == 0 })
}

func TestAPeerThatIsDoneSendingGetsItsAnswers(t *testing.T) {
	h := newScript()
	h.produce = func(r *Request) { go r.Answer(echo(r), nil) }
	_, dial, _ := start(t, h, nil)
	nc := dial()
	send(t, nc, bytes.Join([][]byte{request(0, 1), request(1, 2), request(0, 3)}, nil))
	nc.(*net.TCPConn).CloseWrite()
	expect(t, nc, 1, 2, 3)
	expectClosed(t, nc)
}

func TestBadFramesCostTheirConnectionOnly(t *testing.T) {
	for name, c := range map[string]struct {
		bytes []byte
		cause string
	}{
		"too large":     {binary.BigEndian.AppendUint32(nil, 200<<20), "209715200 bytes, allowed are"},
		"negative":      {[]byte{0xff, 0xff, 0xff, 0xff}, "-1 bytes"},
		"too small":     {[]byte{0, 0, 0, 3, 1, 2, 3}, "3 bytes"},
		"TLS hello":     {[]byte{0x16, 3, 1, 0, 0xa5, 1, 0, 0, 0xa1, 3, 3}, "TLS hello"},
		"HTTP":          {[]byte("GET / HTTP/1.1\r\n\r\n"), "HTTP request"},
		"cut short":     {[]byte{0, 0, 0, 99, 1, 2, 3}, "inside a frame of 99 bytes"},
		"not for us":    {request(99, 1), "refused by the handler"},
		"size in parts": {[]byte{0, 0}, "inside a frame"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newScript()
			s, dial, log := start(t, h, nil)
			good, bad := dial(), dial()
			send(t, bad, append(request(1, 5), c.bytes...))
			bad.(*net.TCPConn).CloseWrite()
			expect(t, bad, 5) // what came before is answered
			expectClosed(t, bad)
			eventually(t, "the log names "+c.cause, func() bool { return strings.Contains(log.String(), c.cause) })
			send(t, good, request(1, 7))
			expect(t, good, 7)
			eventually(t, "all memory is given back", func() bool { return s.pool.Usage().Used == 0 })
		})
	}
}

func TestAnErrorOfTheHandlerClosesTheConnection(t *testing.T) {
	h := newScript()
	h.serve = func(context.Context, *Request) (*frame.Reply, error) { return nil, errRefused }
	h.produce = func(r *Request) { r.Answer(nil, errRefused) }
	_, dial, log := start(t, h, nil)
	for key := range int16(2) {
		nc := dial()
		send(t, nc, request(key, 1))
		expectClosed(t, nc)
	}
	eventually(t, "both are in the log", func() bool { return strings.Count(log.String(), "refused by the handler") == 2 })
}

func TestASlowFrameIsGivenUp(t *testing.T) {
	h := newScript()
	_, dial, log := start(t, h, func(c *Config) { c.TransferGrace = 50 * time.Millisecond; c.TransferMin = 1 << 30 })
	nc := dial()
	send(t, nc, []byte{0, 0, 1, 0, 0, 1})
	expectClosed(t, nc)
	eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "frame came too slowly") })
}

func TestAPeerThatDoesNotReadIsGivenUp(t *testing.T) {
	h := newScript()
	released := make(chan struct{})
	h.serve = func(_ context.Context, r *Request) (*frame.Reply, error) {
		reply := frame.New()
		reply.Bytes(make([]byte, 64<<20))
		reply.OnRelease(func() { close(released) })
		return reply, nil
	}
	s, dial, log := start(t, h, func(c *Config) { c.TransferGrace = 50 * time.Millisecond; c.TransferMin = 1 << 30 })
	nc := dial()
	send(t, nc, request(1, 1))
	<-released
	eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "reply was taken too slowly") })
	eventually(t, "the connection is forgotten", func() bool { return len(s.list()) == 0 })
}

func TestAnIdleConnectionIsClosed(t *testing.T) {
	h := newScript()
	release := make(chan struct{})
	h.serve = func(_ context.Context, r *Request) (*frame.Reply, error) { <-release; return echo(r), nil }
	_, dial, _ := start(t, h, func(c *Config) { c.IdleMax = 400 * time.Millisecond })
	busy := dial()
	send(t, busy, request(1, 1))
	h.await(t, 1)
	expectClosed(t, dial())
	close(release) // a request under way is no idleness
	expect(t, busy, 1)
	expectClosed(t, busy)
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Run("by address", func(t *testing.T) {
		_, dial, log := start(t, newScript(), func(c *Config) { c.ConnectionsPerIPMax = 1 })
		first := dial()
		send(t, first, request(1, 1))
		expect(t, first, 1)
		expectClosed(t, dial())
		eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "max.connections.per.ip") })
		send(t, first, request(1, 2))
		expect(t, first, 2)
	})
	t.Run("an address of its own bound", func(t *testing.T) {
		_, dial, _ := start(t, newScript(), func(c *Config) { c.ConnectionsOverrides = map[string]int{"127.0.0.1": 0} })
		expectClosed(t, dial())
	})
	t.Run("in all", func(t *testing.T) {
		h := newScript()
		_, dial, _ := start(t, h, func(c *Config) { c.ConnectionsMax = 1 })
		first := dial()
		send(t, first, request(1, 1))
		expect(t, first, 1)
		second := dial() // the kernel takes it, the server does not
		send(t, second, request(1, 2))
		first.Close()
		expect(t, second, 2)
	})
}

func TestQueuedRequestsAreBounded(t *testing.T) {
	h := newScript()
	_, dial, _ := start(t, h, func(c *Config) { c.QueuedRequestsMax = 2 })
	nc := dial()
	for id := range int32(4) {
		send(t, nc, request(0, id))
	}
	h.await(t, 2)
	time.Sleep(20 * time.Millisecond)
	if p, _ := h.counts(); p != 2 {
		t.Fatalf("%d produces are with the handler, allowed are 2", p)
	}
	h.answer(0)
	expect(t, nc, 0)
	h.await(t, 1)
	h.answer(1)
	h.answer(2)
	h.await(t, 1)
	h.answer(3)
	expect(t, nc, 1, 2, 3)
}

func TestCloseLetsRequestsFinish(t *testing.T) {
	h := newScript()
	polled := make(chan struct{})
	h.serve = func(ctx context.Context, r *Request) (*frame.Reply, error) {
		<-ctx.Done() // a long poll is told to end
		close(polled)
		return echo(r), nil
	}
	s, dial, _ := start(t, h, nil)
	producer, poller := dial(), dial()
	send(t, producer, request(0, 1))
	send(t, poller, request(1, 2))
	h.await(t, 2)
	closed := make(chan error, 1)
	go func() { closed <- s.Close(context.Background()) }()
	<-polled
	h.answer(1) // a produce under way is still acknowledged
	expect(t, producer, 1)
	expect(t, poller, 2)
	expectClosed(t, producer)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}

func TestCloseCutsOffWhatDoesNotFinish(t *testing.T) {
	h := newScript()
	s, dial, _ := start(t, h, func(c *Config) { c.DrainMax = 30 * time.Millisecond })
	nc := dial()
	send(t, nc, request(0, 1))
	h.await(t, 1)
	if err := s.Close(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Close: %v", err)
	}
	expectClosed(t, nc)
	h.answer(1) // late: it only gives its memory back
	if used := s.pool.Usage().Used; used != 0 {
		t.Fatalf("%d bytes are still held", used)
	}
}

// TestAnyMixKeepsItsOrder sends all kinds of requests in one go: answered at once, later, not at all,
// and barriers, in frames of many sizes.
func TestAnyMixKeepsItsOrder(t *testing.T) {
	h := newScript()
	h.moved = make(chan struct{}, 10_000)
	h.produce = func(r *Request) {
		switch id := r.CorrelationID; id % 5 {
		case 0, 1, 2:
			r.Answer(echo(r), nil)
		case 3:
			r.Answer(nil, nil)
		default:
			go r.Answer(echo(r), nil)
		}
	}
	s, dial, _ := start(t, h, nil)
	const seed = 3
	rnd := rand.New(rand.NewPCG(seed, seed))
	for range 5 {
		nc := dial()
		var all []byte
		var want []int32
		for id := range int32(800) {
			key := int16(0)
			if rnd.IntN(20) == 0 {
				key = 1
			}
			size := rnd.IntN(300)
			if rnd.IntN(50) == 0 {
				size = rnd.IntN(200 << 10)
			}
			all = append(all, request(key, id, make([]byte, size)...)...)
			if key == 1 || id%5 != 3 {
				want = append(want, id)
			}
		}
		go func() {
			for len(all) > 0 { // in pieces that have nothing to do with frames
				n := min(len(all), 1+len(all)%70_000)
				nc.Write(all[:n])
				all = all[n:]
			}
			nc.(*net.TCPConn).CloseWrite()
		}()
		expect(t, nc, want...)
		expectClosed(t, nc)
	}
	eventually(t, "all memory is given back", func() bool { return s.pool.Usage().Used == 0 })
}
