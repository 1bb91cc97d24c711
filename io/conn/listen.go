// Package conn is what both protocol servers share: limits on connections, and the bounded reading of
// length-prefixed frames.
package conn

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

var (
	// ErrAddressLimit: the peer's address has all the connections that one may have.
	ErrAddressLimit = errors.New("too many connections from one address")
	// ErrLimit: there are as many connections as there may be.
	ErrLimit = errors.New("too many connections")
)

// Limits are what a Gate keeps. The zero value limits nothing.
type Limits struct {
	// Max bounds the open connections; 0 is no limit.
	Max int
	// WaitAtMax leaves further peers in the listeners' backlogs until a connection closes, as Kafka's
	// max.connections does; each listener may then be one above Max. Otherwise they are closed at once.
	WaitAtMax bool
	// PerAddressMax bounds the connections of one remote address (max.connections.per.ip,
	// maxClientCnxns); one too many is closed at once. 0 is no limit,
	// below 0 lets none in.
	PerAddressMax int
	// PerAddress overrides PerAddressMax for addresses as net.IP prints them; 0 lets none in
	// (max.connections.per.ip.overrides).
	PerAddress map[string]int
	// SendBufferBytes and ReceiveBufferBytes set the sockets' buffers; at or below 0 they are left to the
	// system, which then tunes them itself.
	SendBufferBytes, ReceiveBufferBytes int
	// Refused, if set, is told of each connection that was closed for a limit, and of each failed
	// accept (remote is nil then). It must not block.
	Refused func(remote net.Addr, cause error)
}

// Gate counts the connections of all listeners that go through it. Safe for concurrent use.
type Gate struct {
	limits Limits

	mu    sync.Mutex
	open  int
	by    map[string]int
	freed chan struct{} // closed and replaced when a connection goes
}

// NewGate returns a gate without connections.
func NewGate(l Limits) *Gate {
	return &Gate{limits: l, by: map[string]int{}, freed: make(chan struct{})}
}

// OpenCount is the number of open connections.
func (g *Gate) OpenCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Listener puts l behind the gate; closing it closes l.
func (g *Gate) Listener(l net.Listener) *Listener {
	return &Listener{gate: g, inner: l, done: make(chan struct{})}
}

func (g *Gate) refused(remote net.Addr, cause error) {
	if g.limits.Refused != nil {
		g.limits.Refused(remote, cause)
	}
}

// room waits until there are fewer than Max; false when done came first.
func (g *Gate) room(done <-chan struct{}) bool {
	for {
		g.mu.Lock()
		full, freed := g.limits.Max > 0 && g.open >= g.limits.Max, g.freed
		g.mu.Unlock()
		if !full {
			return true
		}
		select {
		case <-freed:
		case <-done:
			return false
		}
	}
}

// enter counts a connection in, or says which limit it would break.
func (g *Gate) enter(address string) error {
	limit, own := g.limits.PerAddress[address]
	if !own {
		limit = g.limits.PerAddressMax
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.limits.Max > 0 && !g.limits.WaitAtMax && g.open >= g.limits.Max:
		return fmt.Errorf("%w: %d", ErrLimit, g.limits.Max)
	case (own || limit != 0) && g.by[address] >= limit:
		return fmt.Errorf("%w: %s may have %d", ErrAddressLimit, address, limit)
	}
	g.open++
	g.by[address]++
	return nil
}

func (g *Gate) leave(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.by[address]--; g.by[address] == 0 {
		delete(g.by, address)
	}
	close(g.freed)
	g.freed = make(chan struct{})
}

// Listener is a net.Listener behind a Gate.
type Listener struct {
	gate  *Gate
	inner net.Listener
	once  sync.Once
	done  chan struct{}
}

// Addr is the listener's address.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close stops accepting; open connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.inner.Close()
}

// acceptPauseMax bounds the pause after a failed accept.
const acceptPauseMax = time.Second

// Accept returns the next connection that the limits let in: a *Conn for TCP, with TCP_NODELAY. It rides
// out a lack of descriptors and peers that are gone before they could be taken (accept(2));
// net.ErrClosed comes after Close only.
func (l *Listener) Accept() (net.Conn, error) {
	for pause := time.Duration(0); ; {
		if l.gate.limits.WaitAtMax && !l.gate.room(l.done) {
			return nil, net.ErrClosed
		}
		nc, err := l.inner.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, net.ErrClosed
		}
		if err != nil {
			l.gate.refused(nil, err)
			pause = min(max(2*pause, 5*time.Millisecond), acceptPauseMax)
			select {
			case <-time.After(pause):
			case <-l.done:
			}
			continue
		}
		pause = 0
		address := hostOf(nc.RemoteAddr())
		if err := l.gate.enter(address); err != nil {
			l.gate.refused(nc.RemoteAddr(), err)
			nc.Close()
			continue
		}
		return l.wrap(nc, address), nil
	}
}

func hostOf(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.IP.String()
	}
	return a.String()
}

func (l *Listener) wrap(nc net.Conn, address string) net.Conn {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return &other{Conn: nc, pass: pass{gate: l.gate, address: address}}
	}
	// A system that refuses these keeps its own.
	_ = tc.SetNoDelay(true)
	if n := l.gate.limits.SendBufferBytes; n > 0 {
		_ = tc.SetWriteBuffer(n)
	}
	if n := l.gate.limits.ReceiveBufferBytes; n > 0 {
		_ = tc.SetReadBuffer(n)
	}
	return &Conn{TCPConn: tc, pass: pass{gate: l.gate, address: address}}
}

// pass is a connection's place in its gate.
type pass struct {
	gate    *Gate
	address string
	once    sync.Once
	err     error
}

// Conn is an accepted TCP connection. It shows its socket (SyscallConn), so that disk.File.SendTo can
// send from the page cache.
type Conn struct {
	*net.TCPConn
	pass
}

// Close closes the connection; further calls give what the first gave.
func (c *Conn) Close() error { return c.pass.close(c.TCPConn) }

// other is any connection but TCP.
type other struct {
	net.Conn
	pass
}

func (c *other) Close() error { return c.pass.close(c.Conn) }

// leave is close for a connection that lives on, without its net.Conn, until now.
func (p *pass) leave() { p.once.Do(func() { p.gate.leave(p.address) }) }

func (p *pass) close(nc net.Conn) error {
	p.once.Do(func() {
		p.err = nc.Close()
		p.gate.leave(p.address)
	})
	return p.err
}
