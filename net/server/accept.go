package server

import (
	"errors"
	"net"
	"time"

	ioconn "platter/io/conn"
)

// accept takes the connections that the limits let in, until the listener is closed.
func (s *Server) accept(l Listener) {
	defer s.wg.Done()
	for {
		nc, err := l.Accept()
		if err != nil {
			return // closed
		}
		s.admit(l, nc)
	}
}

// refused is told of every connection over a limit, and of failed accepts: descriptors run out, and that
// passes.
func (s *Server) refused(remote net.Addr, cause error) {
	switch {
	case remote == nil:
		s.log.Warn("accept failed", "err", cause)
	case errors.Is(cause, ioconn.ErrAddressLimit):
		s.log.Warn("connection refused", "peer", remote.String(), "err", cause, "setting", "max.connections.per.ip")
	default:
		s.log.Warn("connection refused", "peer", remote.String(), "err", cause)
	}
}

// admit registers the connection and starts its goroutines.
func (s *Server) admit(l Listener, nc net.Conn) {
	c := newConn(s, l.Name, nc)
	s.mu.Lock()
	if s.stopping.Load() {
		s.mu.Unlock()
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
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
	s.mu.Unlock()
	s.cfg.Metrics.ConnectionClosed()
}

// trimEvery is how long frames' memory is kept that nobody needs.
const trimEvery = 30 * time.Second

// janitor closes the connections whose deadline has passed. One goroutine looks at all of them, so that
// the data path sets a number instead of a timer.
func (s *Server) janitor() {
	defer s.wg.Done()
	tick := min(s.cfg.TransferGrace, 8*time.Second)
	if s.cfg.IdleMax > 0 {
		tick = min(tick, s.cfg.IdleMax)
	}
	tick = max(min(tick, s.cfg.starvedMax)/8, 10*time.Millisecond)
	t := time.NewTicker(tick)
	defer t.Stop()
	trim := time.NewTicker(trimEvery)
	defer trim.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-trim.C:
			s.pool.Trim()
		case now := <-t.C:
			for _, c := range s.list() {
				c.checkDeadlines(now.UnixNano())
			}
			s.relieve(now)
		}
	}
}
