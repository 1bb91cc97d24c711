package zkserver

import (
	"cmp"
	"slices"
	"time"
)

// answerBytesMax is how long one answer may be when next to nothing else waits to be sent: a list of some million
// children. The real server knows no bound but its heap; jute.maxbuffer is the client's, as far as answers go.
const answerBytesMax = 256 << 20

// headBytes is room for what an answer has beside its data: its length, header and Stat.
const headBytes = 256

// tooMuch reports whether an output of n bytes, of which before were there already, is too much, where all have so many
// that were not read. A long answer is not refused for its own length as long as the others keep within their bounds. A
// client that had read all is not the one to pay for others that do not: it is served up to twice the bound, while
// those are closed.
func (s *Server) tooMuch(n, before, all int64) bool {
	if before >= outBytesSoft {
		return n > outBytesMax || all > backlogBytesMax
	}
	if others := all - n; others > backlogBytesMax {
		if s.evicting.CompareAndSwap(false, true) {
			go s.evict()
		}
		return others > 2*backlogBytesMax
	}
	return n > answerBytesMax
}

// evictPause is how long those who were closed may take to let go of their output.
const evictPause = 10 * time.Millisecond

// evict closes those who have left the most unread, until the backlog is within its bound. An answer that is longer than
// what a client may leave unread otherwise is spared while there are others.
func (s *Server) evict() {
	defer func() { s.config.Clock.AfterFunc(evictPause, func() { s.evicting.Store(false) }) }()
	excess := s.backlog.Load() - backlogBytesMax
	type debtor struct {
		c     *conn
		bytes int64
	}
	var all []debtor
	for _, c := range s.conns.list() {
		if n := c.unread(); n > 0 {
			all = append(all, debtor{c, n})
		}
	}
	rank := func(d debtor) int64 {
		if d.bytes > outBytesMax {
			return 0
		}
		return d.bytes
	}
	slices.SortFunc(all, func(a, b debtor) int { return cmp.Compare(rank(b), rank(a)) })
	for _, d := range all {
		if excess <= 0 {
			return
		}
		s.log.Warn("coordinator: connection closed: it leaves the most unread, and others need the room", "peer", d.c.peer, "bytes", d.bytes)
		d.c.close()
		excess -= d.bytes
	}
}

// unread is about how much the client has left unread, as far as it counts.
func (c *conn) unread() int64 {
	c.omu.Lock()
	defer c.omu.Unlock()
	if c.closed {
		return 0
	}
	return c.counted + c.sending
}

// overdrawn counts a long output into the backlog of all, and reports whether it, or that, is too much.
func (c *conn) overdrawn(before int) bool {
	n := int64(len(c.out))
	all := c.server.backlog.Add(n - c.counted)
	c.counted = n
	return c.server.tooMuch(n, int64(before), all)
}

// reserve takes room for an answer that is to be made, before memory is. False: there is none, and the connection has
// been closed.
func (c *conn) reserve(answerBytes int64) bool {
	if answerBytes <= backlogBytesMin {
		return true
	}
	c.omu.Lock()
	defer c.omu.Unlock()
	before := int64(len(c.out))
	n := before + answerBytes
	all := c.server.backlog.Add(n - c.counted)
	c.counted = n
	if c.closed {
		c.server.backlog.Add(-n)
		c.counted = 0
		return false
	}
	if c.server.tooMuch(n, before, all) {
		c.server.log.Warn("coordinator: connection closed: a longer answer than there is room for", "peer", c.peer, "bytes", answerBytes)
		c.closeLocked()
		return false
	}
	c.out = slices.Grow(c.out, int(answerBytes)+headBytes)
	return true
}
