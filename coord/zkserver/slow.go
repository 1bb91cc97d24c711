package zkserver

import "time"

// lingerTime is how long a connection that has ended may go on taking what was to be sent to it.
const lingerTime = 30 * time.Second

// drain is the reader's end: it sends what is left, unless the client leaves it for lingerTime, and closes.
func (c *conn) drain() {
	c.omu.Lock()
	defer c.omu.Unlock()
	c.last = true
	c.ended.Store(true)
	if !c.closed && (c.flushing || len(c.out) > 0) {
		defer c.server.config.Clock.AfterFunc(lingerTime, c.close)()
	}
	for c.flushing {
		c.taken.Wait()
	}
	c.flushing = true
	c.send(c.nc.Write)
}

// writeStepBytes is how much of a long output goes at once to a client that takes it slowly.
const writeStepBytes = 16 << 10

// write sends all of b. While the reader waits for that, and does not come to the client's pings, each step that the
// client takes is a sign of life.
func (c *conn) write(b []byte) (n int, err error) {
	if len(b) <= writeStepBytes {
		return c.nc.Write(b)
	}
	if c.try != nil {
		n, err = c.try(b)
	}
	for n < len(b) && err == nil {
		var step int
		step, err = c.nc.Write(b[n:min(n+writeStepBytes, len(b))])
		n += step
		if x := c.attached.Load(); x != nil && err == nil && c.readerWaits.Load() {
			c.server.sessions.touch(x)
		}
	}
	return n, err
}
