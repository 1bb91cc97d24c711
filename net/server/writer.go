package server

import (
	"net"
	"time"
)

// write is the writer's goroutine: it hands over what waited for a barrier, serves barriers, and sends
// the answers in request order.
func (c *conn) write() {
	defer c.exit()
	for {
		r, act := c.turn()
		switch act {
		case over:
			c.abandon()
			return
		case handOver:
			c.s.cfg.Handler.Produce(r)
			c.mu.Lock()
			c.next++
			c.mu.Unlock()
			continue
		case serve:
			c.serveSince.Store(time.Now().UnixNano())
			r.reply, r.err = c.s.cfg.Handler.Serve(c.ctx, r)
			c.serveSince.Store(0)
		}
		if !c.finish(r, c.nc) {
			c.abandon()
			return
		}
	}
}

// action is what the writer has to do next.
type action int

const (
	over     action = iota // the connection's end
	handOver               // a produce that waited behind a barrier
	serve                  // a barrier whose turn has come
	sendOff                // an answered request at the head
)

// turn blocks until there is something to do.
func (c *conn) turn() (*Request, action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.dead, c.readDone && len(c.queue) == 0 && !c.unsent:
			return nil, over
		case c.next < len(c.queue) && c.queue[c.next].produce:
			r := c.queue[c.next]
			r.handedOver = true
			return r, handOver
		case len(c.queue) > 0 && c.queue[0].done && c.queue[0] != c.inline:
			return c.queue[0], sendOff
		case len(c.queue) > 0 && c.next == 0:
			r := c.queue[0]
			r.handedOver = true
			c.next = 1
			return r, serve
		}
		c.ready.Wait()
	}
}

// finish sends the answer of the request at the head and drops it; false when the connection is over.
func (c *conn) finish(r *Request, to net.Conn) bool {
	err := r.err
	reply := r.reply
	r.reply = nil
	if err == nil && reply != nil {
		c.s.cfg.Metrics.Answered(r.Key, r.Version, r.Received, reply.Len())
		err = c.send(reply, to)
	} else if reply != nil {
		reply.Release()
	}
	c.mu.Lock()
	c.unsent = len(c.out.buf) > 0
	if len(c.queue) > 0 { // else the writer has given up on all of it
		c.queue[0] = nil
		if len(c.queue) == 1 {
			c.queue = c.queue[:0] // keeps its room
		} else {
			c.queue = c.queue[1:]
		}
		c.next--
		c.held -= int64(len(r.frame.B))
	}
	c.mu.Unlock()
	c.room.Signal()
	r.free()
	if err != nil {
		c.fail(err)
		return false
	}
	return true
}

// abandon gives back what nobody will send. A produce that is still under way keeps its frame, which the
// log may be reading, until it is answered.
func (c *conn) abandon() {
	c.fail(nil)
	c.mu.Lock()
	queue := c.queue
	c.queue, c.next = nil, 0
	var free []*Request
	for _, r := range queue {
		if r == c.inline {
			continue
		}
		if r.handedOver && !r.done {
			r.orphan = true
			continue
		}
		free = append(free, r)
	}
	c.mu.Unlock()
	for _, r := range free {
		r.free()
	}
}
