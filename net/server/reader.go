package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Causes that end a connection, for the log and for tests.
var (
	ErrFrameSize = errors.New("frame size is out of bounds")
	ErrTLS       = errors.New("a TLS hello on a plaintext listener")
	ErrHTTP      = errors.New("an HTTP request on a Kafka listener")
	ErrCutShort  = errors.New("connection ended inside a frame")
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
		h, body, produce, err := c.s.cfg.Handler.Accept(b.bytes)
		if err != nil {
			b.free()
			c.fail(err)
			return
		}
		r := requests.Get().(*Request)
		*r = Request{Header: h, Conn: &c.Conn, Body: body, Received: time.Now(), c: c, frame: b, produce: produce}
		if !c.enqueue(r) {
			return
		}
	}
}

// readEnded sorts out why no frame came: at a frame's border the peer may still want its answers.
func (c *conn) readEnded(err error) {
	switch {
	case err == io.EOF:
		c.leave()
		c.mu.Lock()
		c.endOfRequests()
		c.mu.Unlock()
	case c.s.stopping.Load() && errors.Is(err, os.ErrDeadlineExceeded):
		c.mu.Lock()
		c.endOfRequests()
		c.mu.Unlock()
	case errors.Is(err, net.ErrClosed):
		c.fail(nil)
	default:
		c.fail(err)
	}
}

// enqueue puts r behind the others, and hands a produce over at once when nothing holds it up. It then
// blocks while the connection's requests are over their bounds; false when the connection is over.
func (c *conn) enqueue(r *Request) bool {
	c.mu.Lock()
	if c.dead || c.readDone {
		c.mu.Unlock()
		r.free()
		return false
	}
	direct := r.produce && c.next == len(c.queue)
	c.queue = append(c.queue, r)
	c.held += int64(len(r.frame.bytes))
	if direct {
		c.next++
		r.handedOver = true
		alone := len(c.queue) == 1
		if alone {
			c.inline = r
		}
		c.mu.Unlock()
		c.s.cfg.Handler.Produce(r)
		c.mu.Lock()
		if alone {
			c.settle(r)
		}
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
// writer for each would cost more than the write. It is called with the lock held.
func (c *conn) settle(r *Request) {
	queued := len(c.queue) > 0
	switch {
	case queued && r.done && !c.dead:
		c.mu.Unlock()
		c.finish(r)
		c.mu.Lock()
	case !queued && r.done: // the writer has left, and left it to us
		r.free()
	case !queued:
		r.orphan = true
	}
	c.inline = nil
	if c.dead || c.readDone {
		c.ready.Signal()
	}
}

func (c *conn) overBounds() bool {
	cfg := &c.s.cfg
	return len(c.queue) >= cfg.QueuedRequestsMax || c.held > cfg.QueuedRequestBytesMax/4
}

// readFrame reads one length-prefixed frame into a pooled buffer, which the caller frees. io.EOF comes
// only between frames.
func (c *conn) readFrame() (*buffer, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(c.br, prefix[:1]); err != nil {
		if err != io.EOF && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
			err = fmt.Errorf("%w: %w", errGone, err)
		}
		return nil, err
	}
	c.readDeadline.Store(c.transferDeadline(4))
	if _, err := io.ReadFull(c.br, prefix[1:]); err != nil {
		return nil, cutShort(err, 4)
	}
	size, err := c.frameSize(prefix)
	if err != nil {
		return nil, err
	}
	c.readDeadline.Store(c.transferDeadline(int64(size)))
	b, err := c.readBody(size)
	c.readDeadline.Store(0)
	c.touch()
	return b, err
}

// frameSize reads the prefix; what is no size may be recognised as another protocol's first bytes.
func (c *conn) frameSize(prefix [4]byte) (int, error) {
	size := int32(binary.BigEndian.Uint32(prefix[:]))
	if size >= headerBytesMin && int(size) <= c.s.cfg.RequestBytesMax {
		return int(size), nil
	}
	switch {
	case prefix[0] == 0x16 && prefix[1] == 3: // handshake record, SSL 3.0 to TLS 1.3
		return 0, ErrTLS
	case string(prefix[:]) == "GET " || string(prefix[:]) == "POST" || string(prefix[:]) == "HEAD":
		return 0, ErrHTTP
	}
	return 0, fmt.Errorf("%w: %d bytes, allowed are %d to %d (socket.request.max.bytes)",
		ErrFrameSize, size, headerBytesMin, c.s.cfg.RequestBytesMax)
}

// headerBytesMin is a request header without a client id: key, version, correlation id.
const headerBytesMin = 8

// readBody reads size bytes, with memory that grows as they arrive.
func (c *conn) readBody(size int) (*buffer, error) {
	b, err := c.s.budget.buffer(c.ctx, min(size, max(firstBytes, c.usual)))
	if err != nil {
		return nil, err
	}
	for {
		have := len(b.bytes)
		n, err := io.ReadFull(c.br, b.bytes[have:min(size, cap(b.bytes))])
		b.bytes = b.bytes[:have+n]
		if err != nil {
			b.free()
			return nil, cutShort(err, size)
		}
		if len(b.bytes) == size {
			c.usual = min(size, classBytesMax)
			return b, nil
		}
		if err := b.grow(c.ctx, size); err != nil {
			b.free()
			return nil, err
		}
	}
}

func cutShort(err error, size int) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w of %d bytes: %w", ErrCutShort, size, err)
}
