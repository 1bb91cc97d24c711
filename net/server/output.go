package server

import (
	"fmt"
	"net"
)

// outBytesMax is how much of answers may wait for company.
const outBytesMax = 4 << 10

// output gathers small answers that the reader gives, so that those to requests which came together
// leave together. It is the connection to frame.Reply, for answers without file ranges.
type output struct {
	net.Conn
	c   *conn
	buf []byte
}

// Write keeps p, or sends what is kept when it is too much.
func (o *output) Write(p []byte) (int, error) {
	o.buf = append(o.buf, p...)
	if len(o.buf) > outBytesMax {
		return len(p), o.c.flush()
	}
	return len(p), nil
}

// flush sends what is kept. Only the reader calls it, and only while the writer has nothing to send.
func (c *conn) flush() error {
	if len(c.out.buf) == 0 {
		return nil
	}
	c.writeDeadline.Store(c.transferDeadline(int64(len(c.out.buf))))
	_, err := c.nc.Write(c.out.buf)
	c.writeDeadline.Store(0)
	if c.out.buf = c.out.buf[:0]; cap(c.out.buf) > 2*outBytesMax {
		c.out.buf = nil
	}
	c.mu.Lock()
	c.unsent = false
	if c.readDone || c.dead {
		c.ready.Signal()
	}
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	c.touch()
	return nil
}
