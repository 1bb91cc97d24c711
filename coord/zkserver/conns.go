package zkserver

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"

	ioconn "platter/io/conn"
)

// frameBudgetBytes bounds the frames of all connections in memory. A frame is held while it arrives and
// its request is decoded and queued, so this is many times what is used, unless thousands of peers send
// the beginnings of long frames: these hold 64 KiB each until their session or handshake times out.
const frameBudgetBytes = 256 << 20

// newFrameReader reads a connection of which first was read already.
func (s *Server) newFrameReader(c *conn, first []byte) *ioconn.FrameReader {
	return ioconn.NewFrameReader(context.Background(), c, ioconn.FrameConfig{Pool: s.frames, BytesMax: s.config.FrameBytesMax, First: first})
}

// limits are those of zoo.cfg.
func (s *Server) limits() ioconn.Limits {
	return ioconn.Limits{Max: s.config.MaxCnxns, PerAddressMax: s.config.MaxClientCnxns, Refused: s.refused}
}

// refused is told of every connection over a limit, and of failed accepts: descriptors run out, and that
// passes.
func (s *Server) refused(remote net.Addr, cause error) {
	s.stats.refused.Add(1)
	switch {
	case remote == nil:
		s.log.Warn("coordinator: accept", "err", cause)
	case errors.Is(cause, ioconn.ErrAddressLimit):
		s.log.Warn("coordinator: connection refused", "peer", remote, "err", cause, "setting", "maxClientCnxns")
	default:
		s.log.Warn("coordinator: connection refused", "peer", remote, "err", cause)
	}
}

// connTable is the open connections.
type connTable struct {
	mu     sync.Mutex
	all    map[*conn]struct{}
	closed bool
}

func (t *connTable) init() { t.all = map[*conn]struct{}{} }

// add takes c in; false once the table was closed.
func (t *connTable) add(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.all[c] = struct{}{}
	}
	return !t.closed
}

func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, c)
}

func (t *connTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// list gives the open connections, in no order.
func (t *connTable) list() []*conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.all))
}

// closeAll closes every connection, and lets no more in.
func (t *connTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for c := range t.all {
		c.close()
		c.abandon()
	}
}
