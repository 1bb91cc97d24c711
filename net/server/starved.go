package server

import (
	"errors"
	"time"
)

// ErrStarving ends a connection that keeps others from the memory for their frames.
var ErrStarving = errors.New("holds memory for too long while others wait for it")

const (
	// starvedMax is how long frames may wait for memory, and how long one connection may keep it then
	// without getting on.
	starvedMax = 5 * time.Second
	// keptBytesMin is what is not worth a connection.
	keptBytesMin = 64 << 10
)

// relieve is called now and then. When frames have waited for memory for long, it ends the connection
// that has kept some the longest with a frame that does not come whole, or with requests behind a long
// poll. A slow disk is no reason: what has reached the handler is left alone.
func (s *Server) relieve(now time.Time) {
	if s.pool.Usage().Waiting == 0 {
		s.starvedSince = time.Time{}
		return
	}
	if s.starvedSince.IsZero() {
		s.starvedSince = now
	}
	if now.Sub(s.starvedSince) < s.cfg.starvedMax {
		return
	}
	var victim *conn
	oldest := now.Add(-s.cfg.starvedMax).UnixNano()
	for _, c := range s.list() {
		if since := c.keepsSince(); since != 0 && since < oldest {
			victim, oldest = c, since
		}
	}
	if victim != nil {
		victim.fail(ErrStarving)
		s.starvedSince = now // give the others time to get on
	}
}

// keepsSince is from when on the connection has kept memory without getting on, in Unix nanoseconds; 0
// when it does not.
func (c *conn) keepsSince() int64 {
	if since := c.readSince.Load(); since != 0 {
		return since
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held < keptBytesMin {
		return 0
	}
	return c.serveSince.Load()
}
