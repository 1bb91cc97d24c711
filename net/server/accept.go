package server

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// errTooMany is the cause when an address has all the connections that it may have.
var errTooMany = errors.New("max.connections.per.ip reached")

// acceptBackoffMax bounds the pause after a failed accept (descriptors exhausted: it will pass).
const acceptBackoffMax = time.Second

func (s *Server) accept(l Listener) {
	defer s.wg.Done()
	backoff := 5 * time.Millisecond
	for s.waitForRoom() {
		nc, err := l.Accept()
		if err != nil {
			if s.stopping.Load() || errors.Is(err, net.ErrClosed) {
				return
			}
			s.log.Warn("accept failed", "listener", l.Name, "err", err)
			select {
			case <-time.After(backoff):
			case <-s.stop:
				return
			}
			backoff = min(2*backoff, acceptBackoffMax)
			continue
		}
		backoff = 5 * time.Millisecond
		s.admit(l, nc)
	}
}

// waitForRoom blocks while max.connections is reached; false when the server stops.
func (s *Server) waitForRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.cfg.ConnectionsMax > 0 && len(s.conns) >= s.cfg.ConnectionsMax && !s.stopping.Load() {
		s.freed.Wait()
	}
	return !s.stopping.Load()
}

// admit registers the connection and starts its goroutines, or closes it.
func (s *Server) admit(l Listener, nc net.Conn) {
	ip := hostOf(nc.RemoteAddr())
	s.setBuffers(nc)
	c := newConn(s, l.Name, ip, nc)
	s.mu.Lock()
	limit, known := s.cfg.ConnectionsOverrides[ip]
	if !known {
		limit = s.cfg.ConnectionsPerIPMax
	}
	over := (limit > 0 || known) && s.perIP[ip] >= limit
	if over || s.stopping.Load() {
		s.mu.Unlock()
		nc.Close()
		if over {
			s.log.Warn("connection refused", "peer", nc.RemoteAddr().String(), "err", fmt.Errorf("%w: %d", errTooMany, limit))
		}
		return
	}
	s.conns[c] = struct{}{}
	s.perIP[ip]++
	s.wg.Add(2)
	s.mu.Unlock()
	s.cfg.Metrics.ConnectionOpened()
	go c.read()
	go c.write()
}

// forget is called once a connection's goroutines have ended.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	if s.perIP[c.ip]--; s.perIP[c.ip] <= 0 {
		delete(s.perIP, c.ip)
	}
	s.freed.Broadcast()
	s.mu.Unlock()
	s.cfg.Metrics.ConnectionClosed()
}

// setBuffers applies the socket buffer settings; a system that refuses them keeps its own.
func (s *Server) setBuffers(nc net.Conn) {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tc.SetNoDelay(true)
	if s.cfg.SendBufferBytes > 0 {
		_ = tc.SetWriteBuffer(s.cfg.SendBufferBytes)
	}
	if s.cfg.ReceiveBufferBytes > 0 {
		_ = tc.SetReadBuffer(s.cfg.ReceiveBufferBytes)
	}
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// janitor closes the connections whose deadline has passed. One goroutine looks at all of them, so that
// the data path sets a number instead of a timer.
func (s *Server) janitor() {
	defer s.wg.Done()
	tick := min(s.cfg.TransferGrace, 8*time.Second)
	if s.cfg.IdleMax > 0 {
		tick = min(tick, s.cfg.IdleMax)
	}
	tick = max(tick/8, 10*time.Millisecond)
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-t.C:
			for _, c := range s.list() {
				c.checkDeadlines(now.UnixNano())
			}
		}
	}
}
