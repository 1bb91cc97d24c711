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
