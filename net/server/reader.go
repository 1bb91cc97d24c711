package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"platter/io/buf"
	ioconn "platter/io/conn"
)

// read is the reader's goroutine.
func (c *conn) read() {
	defer c.exit()
	for {
		b, err := c.readFrame()
		if err != nil {
			c.readEnded(err)
			return
		}
		h, body, produce, err := c.s.cfg.Handler.Accept(b.B)
		if err != nil {
			b.Release()
			c.readEnded(err)
			return
		}
		now := time.Now()
		c.idleSince.Store(now.UnixNano())
		r := requests.Get().(*Request)
		*r = Request{Header: h, Conn: &c.Conn, Body: body, Received: now, c: c, frame: b, produce: produce}
		if !c.enqueue(r) {
			c.readEnded(nil)
			return
		}
	}
}

// readEnded sorts out why no more frames come. Whatever the cause, the peer may still want its answers to
// what came before.
func (c *conn) readEnded(err error) {
	if ferr := c.flush(); ferr != nil {
		c.fail(ferr)
		return
	}
	stopped := c.s.stopping.Load() && errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case err == nil:
		return
	case errors.Is(err, net.ErrClosed):
		c.fail(nil)
		return
	case err == io.EOF || stopped:
		err = nil
	}
	if !stopped {
		c.leave() // nothing is waited for any longer
	}
	c.mu.Lock()
	if c.cause == nil {
		c.cause = err
	}
	c.endOfRequests()
	c.mu.Unlock()
}

// enqueue puts r behind the others, and hands a produce over at once when nothing holds it up. It then
// blocks while the connection's requests are over their bounds; false when the connection is over.
func (c *conn) enqueue(r *Request) bool {
	if !r.produce {
		if err := c.flush(); err != nil { // the writer answers it, behind what waits here
			r.free()
			c.fail(err)
			return false
		}
	}
	c.mu.Lock()
	if c.dead || c.readDone {
		c.mu.Unlock()
		r.free()
		return false
	}
	direct := r.produce && c.next == len(c.queue)
	c.queue = append(c.queue, r)
	c.held += int64(len(r.frame.B))
	if direct {
		c.next++
		r.handedOver = true
		alone := len(c.queue) == 1
		if alone {
			c.inline = r
		}
		c.mu.Unlock()
		c.s.cfg.Handler.Produce(r)
		if alone {
			c.settle(r)
		}
		c.mu.Lock()
	} else if c.next == len(c.queue)-1 {
		c.ready.Signal()
	}
	for c.overBounds() && !c.dead && !c.readDone {
		c.room.Wait()
	}
	over := c.dead || c.readDone
	c.mu.Unlock()
	return !over
}

// settle sends the answer to a produce that had nothing before it, when it is there already: waking the
// writer for each would cost more than the write. With more requests read ahead it waits for theirs.
func (c *conn) settle(r *Request) {
	c.mu.Lock()
	mine := r.done && !c.dead
	c.mu.Unlock()
	if mine {
		c.finish(r, &c.out)
	} else if err := c.flush(); err != nil { // the writer's answers come behind what waits here
		c.fail(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inline = nil
	switch {
	case mine:
	case len(c.queue) > 0:
		if r.done {
			c.ready.Signal()
		}
	case r.done: // the writer has left, and left it to us
		r.free()
	default:
		r.orphan = true
	}
	if c.dead || c.readDone {
		c.ready.Signal()
	}
}

func (c *conn) overBounds() bool {
	cfg := &c.s.cfg
	return len(c.queue) >= cfg.QueuedRequestsMax || c.held > cfg.QueuedRequestBytesMax/4
}

// aheadBytes is a connection's read-ahead.
const aheadBytes = 8 << 10

// headerBytesMin is a request header without a client id: key, version, correlation id.
const headerBytesMin = 8

func (c *conn) newFrameReader() *ioconn.FrameReader {
	return ioconn.NewFrameReader(c.ctx, c.nc, ioconn.FrameConfig{
		Pool: c.s.pool, BytesMin: headerBytesMin, BytesMax: c.s.cfg.RequestBytesMax,
		AheadBytes: aheadBytes, Progress: c.progress, Kept: c.kept, BeforeRead: c.flush,
	})
}

// progress is told how many bytes a frame waits for, and 0 at its end.
func (c *conn) progress(bytes int) {
	if bytes == 0 {
		c.readDeadline.Store(0)
		c.readSince.Store(0)
		return
	}
	c.readDeadline.Store(c.transferDeadline(int64(bytes)))
}

// kept is told when a frame that has not come whole has got memory.
func (c *conn) kept() { c.readSince.Store(time.Now().UnixNano()) }

// readFrame reads one frame, which the caller releases. io.EOF comes only between frames.
func (c *conn) readFrame() (*buf.Buffer, error) {
	b, err := c.frames.Next()
	switch {
	case err == nil:
	case errors.Is(err, ioconn.ErrFrameSize):
		return nil, fmt.Errorf("%w (socket.request.max.bytes)", err)
	case errors.As(err, new(*net.OpError)) && !errors.Is(err, ioconn.ErrCutShort) &&
		!errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed):
		return nil, fmt.Errorf("%w: %w", errGone, err) // between frames that is no news
	}
	return b, err
}
