package zkserver

import "slices"

// answerBytesMax is how long one answer may be when next to nothing else waits to be sent: a list of some million
// children. The real server knows no bound but its heap; jute.maxbuffer is the client's, as far as answers go.
const answerBytesMax = 256 << 20

// headBytes is room for what an answer has beside its data: its length, header and Stat.
const headBytes = 256

// tooMuch reports whether an output of n bytes, of which before were there already, is too much, where all have so many
// that were not read. A long answer is not refused for its own length as long as the others keep within their bounds.
func tooMuch(n, before, all int64) bool {
	if before >= outBytesSoft {
		return n > outBytesMax || all > backlogBytesMax
	}
	return n > answerBytesMax || all > backlogBytesMax && all-n > backlogBytesMax
}

// overdrawn counts a long output into the backlog of all, and reports whether it, or that, is too much.
func (c *conn) overdrawn(before int) bool {
	n := int64(len(c.out))
	all := c.server.backlog.Add(n - c.counted)
	c.counted = n
	return tooMuch(n, int64(before), all)
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
	if tooMuch(n, before, all) {
		c.server.log.Warn("coordinator: connection closed: a longer answer than there is room for", "peer", c.peer, "bytes", answerBytes)
		c.closeLocked()
		return false
	}
	c.out = slices.Grow(c.out, int(answerBytes)+headBytes)
	return true
}
