// Package conn is what both protocol servers share: listeners that limit connections, and the bounded
// reading of length-prefixed frames.
package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

var (
	// ErrAddressLimit: the peer's address has as many connections as one may have.
	ErrAddressLimit = errors.New("too many connections from one address")
	// ErrLimit: there are as many connections as the listener may have; new ones wait in the backlog.
	ErrLimit = errors.New("too many connections")
)

// Config is a listener's.
type Config struct {
	// Addr is host:port, as net.Listen has it.
	Addr string
	// Max bounds the open connections (Kafka's max.connections): at the limit none is accepted until
	// one closes. 0 is no limit.
	Max int
	// PerAddressMax bounds those of one remote address (max.connections.per.ip); one too many is closed
	// at once. 0 is no limit.
	PerAddressMax int
	// PerAddress overrides PerAddressMax (max.connections.per.ip.overrides).
	PerAddress map[netip.Addr]int
	// SendBufferBytes and ReceiveBufferBytes set the sockets' buffers; 0 leaves them to the system,
	// which then tunes them itself.
	SendBufferBytes, ReceiveBufferBytes int
	// Refused, if set, is told of a connection that was closed for a limit, and once whenever Max is
	// reached (remote is nil then). It must not block.
	Refused func(remote net.Addr, cause error)
}

// Listener is a net.Listener whose connections are *Conn.
type Listener struct {
	cfg  Config
	l    *net.TCPListener
	room chan struct{} // a token for each open connection; nil without a limit
	done chan struct{}

	mu     sync.Mutex
	closed bool
	open   map[*Conn]struct{}
	by     map[netip.Addr]int
}

// Conn is an accepted TCP connection. It shows its socket (SyscallConn), so that disk.File.SendTo can
// send from the page cache.
type Conn struct {
	*net.TCPConn
	l    *Listener
	addr netip.Addr
	once sync.Once
	err  error
}

// Listen opens a TCP listener.
func Listen(cfg Config) (*Listener, error) {
	nl, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, err
	}
	l := &Listener{cfg: cfg, l: nl.(*net.TCPListener), done: make(chan struct{}), open: map[*Conn]struct{}{}, by: map[netip.Addr]int{}}
	if cfg.Max > 0 {
		l.room = make(chan struct{}, cfg.Max)
	}
	return l, nil
}

// Addr is the listener's address.
func (l *Listener) Addr() net.Addr { return l.l.Addr() }

// Accept returns the next connection, a *Conn with TCP_NODELAY. It rides out a lack of descriptors, and
// connections that are gone before they could be taken. net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	for pause := time.Duration(0); ; {
		tc, err := l.l.AcceptTCP()
		if err != nil {
			if l.isClosed() {
				l.leave()
				return nil, net.ErrClosed
			}
			// Too many open files, or a peer's reset: nothing that ends a server (accept(2)).
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-l.done:
			}
			continue
		}
		pause = 0
		if c := l.admit(tc); c != nil {
			return c, nil
		}
	}
}

// enter takes a place among Max.
func (l *Listener) enter() error {
	if l.room == nil {
		return nil
	}
	select {
	case l.room <- struct{}{}:
		return nil
	default:
	}
	l.refused(nil, fmt.Errorf("%w: %d", ErrLimit, l.cfg.Max))
	select {
	case l.room <- struct{}{}:
		return nil
	case <-l.done:
		return net.ErrClosed
	}
}

func (l *Listener) leave() {
	if l.room != nil {
		<-l.room
	}
}

func (l *Listener) refused(remote net.Addr, cause error) {
	if l.cfg.Refused != nil {
		l.cfg.Refused(remote, cause)
	}
}

// admit counts the connection, or closes it and returns nil.
func (l *Listener) admit(tc *net.TCPConn) *Conn {
	addr := tc.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	limit := l.cfg.PerAddressMax
	if own, ok := l.cfg.PerAddress[addr]; ok {
		limit = own
	}
	l.mu.Lock()
	if l.closed || limit > 0 && l.by[addr] >= limit {
		closed := l.closed
		l.mu.Unlock()
		if !closed {
			l.refused(tc.RemoteAddr(), fmt.Errorf("%w: %s has %d", ErrAddressLimit, addr, limit))
		}
		tc.Close()
		return nil
	}
	c := &Conn{TCPConn: tc, l: l, addr: addr}
	l.open[c] = struct{}{}
	l.by[addr]++
	l.mu.Unlock()
	if l.cfg.SendBufferBytes > 0 {
		tc.SetWriteBuffer(l.cfg.SendBufferBytes)
	}
	if l.cfg.ReceiveBufferBytes > 0 {
		tc.SetReadBuffer(l.cfg.ReceiveBufferBytes)
	}
	return c
}

// Close closes the connection; further calls give what the first gave.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.err = c.TCPConn.Close()
		l := c.l
		l.mu.Lock()
		delete(l.open, c)
		if l.by[c.addr]--; l.by[c.addr] == 0 {
			delete(l.by, c.addr)
		}
		l.mu.Unlock()
		l.leave()
	})
	return c.err
}

func (l *Listener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// OpenCount is the number of open connections.
func (l *Listener) OpenCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Close stops accepting; open connections stay.
func (l *Listener) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if again {
		return net.ErrClosed
	}
	close(l.done)
	return l.l.Close()
}

// Shutdown stops accepting, waits for the connections to be closed by those who serve them, and closes
// the rest when ctx ends.
func (l *Listener) Shutdown(ctx context.Context) {
	l.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.OpenCount() > 0 {
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		l.CloseConns()
	}
}

// CloseConns closes every open connection.
func (l *Listener) CloseConns() {
	l.mu.Lock()
	open := make([]*Conn, 0, len(l.open))
	for c := range l.open {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}
