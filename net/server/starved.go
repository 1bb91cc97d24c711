package server

import (
	"cmp"
	"errors"
	"math"
	"slices"
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
// poll; at the next look, if that was not enough, two, then four: a thousand of them are gone within
// seconds. A slow disk is no reason: what has reached the handler is left alone.
func (s *Server) relieve(now time.Time) {
	if s.pool.Usage().Waiting == 0 {
		s.starvedSince, s.relief = time.Time{}, 0
		return
	}
	if s.starvedSince.IsZero() {
		s.starvedSince = now
	}
	if now.Sub(s.starvedSince) < s.cfg.starvedMax {
		return
	}
	type keeper struct {
		c     *conn
		since int64
	}
	var keepers []keeper
	for _, c := range s.list() {
		if since := c.keepsSince(); since != 0 && since < now.Add(-s.cfg.starvedMax).UnixNano() {
			keepers = append(keepers, keeper{c, since})
		}
	}
	slices.SortFunc(keepers, func(a, b keeper) int { return cmp.Compare(a.since, b.since) })
	s.relief = max(1, s.relief)
	for _, k := range keepers[:min(s.relief, len(keepers))] {
		k.c.fail(ErrStarving)
	}
	s.relief = min(2*s.relief, math.MaxInt16)
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
