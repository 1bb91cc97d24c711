package delivery

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between clients and the broker, which advertises it as its own address. It follows the frames
// on each connection, so that it can cut at the two worst moments of a Produce request: before the broker has
// it, and after the broker has acted on it, but before the client knows.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   func(moment) bool // asked for each Produce; true: cut here
	conns map[net.Conn]bool
	jobs  sync.WaitGroup
}

// moment is where a Produce request can be cut off.
type moment int

const (
	beforeAppend moment = iota // the request is lost
	afterAppend                // the answer is lost
)

// Frames of Kafka's protocol: a length of 4 bytes, then of a request api_key (2), api_version (2) and
// correlation_id (4), of an answer correlation_id (4).
const (
	produceKey    = 0
	frameBytesMax = 64 << 20
)

func newProxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, conns: map[net.Conn]bool{}, cut: func(moment) bool { return false }}
	return p
}

// start lets connections through to target; the proxy ends with the test.
func (p *proxy) start(t *testing.T, target string) {
	p.target = target
	p.jobs.Go(func() {
		for {
			c, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.jobs.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		p.listener.Close()
		p.mu.Lock()
		for c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.jobs.Wait()
	})
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// onProduce sets who decides; it is called for one request at a time.
func (p *proxy) onProduce(cut func(moment) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

func (p *proxy) decide(m moment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut(m)
}

// produces are the correlation ids of the Produce requests that a connection has under way.
type produces struct {
	mu  sync.Mutex
	ids map[uint32]bool
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	broker, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer broker.Close()
	p.keep(client, broker)
	defer p.forget(client, broker)
	under := &produces{ids: map[uint32]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer client.Close()
		defer broker.Close()
		copyFrames(client, broker, func(frame []byte) bool { return !under.answers(frame) || !p.decide(afterAppend) })
	}()
	copyFrames(broker, client, func(frame []byte) bool { return !under.asks(frame) || !p.decide(beforeAppend) })
	client.Close()
	broker.Close()
	<-done
}

func (p *proxy) keep(cs ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cs {
		p.conns[c] = true
	}
}

func (p *proxy) forget(cs ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cs {
		delete(p.conns, c)
	}
}

// copyFrames hands frames on until one may not pass, or a side closes.
func copyFrames(to io.Writer, from io.Reader, pass func(frame []byte) bool) {
	for {
		var size [4]byte
		if _, err := io.ReadFull(from, size[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(size[:])
		if n < 4 || n > frameBytesMax {
			return
		}
		frame := make([]byte, 4+n)
		copy(frame, size[:])
		if _, err := io.ReadFull(from, frame[4:]); err != nil || !pass(frame[4:]) {
			return
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// asks notes a request, and says whether it is a Produce.
func (u *produces) asks(frame []byte) bool {
	if len(frame) < 8 || binary.BigEndian.Uint16(frame) != produceKey {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids[binary.BigEndian.Uint32(frame[4:])] = true
	return true
}

// answers says whether an answer is to a Produce.
func (u *produces) answers(frame []byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	id := binary.BigEndian.Uint32(frame)
	is := u.ids[id]
	delete(u.ids, id)
	return is
}
