package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// aheadBytes is a connection's read-ahead: small pipelined frames come several a system call, and a
// large one brings the next one's head along.
const aheadBytes = 8 << 10

// input is the bytes that were read and not taken yet, at most aheadBytes.
type input struct {
	buf        [aheadBytes]byte
	start, end int
}

func (in *input) len() int { return in.end - in.start }

// take moves up to len(p) bytes to p.
func (in *input) take(p []byte) int {
	n := copy(p, in.buf[in.start:in.end])
	in.start += n
	return n
}

// put keeps bytes that were read beyond a frame. Nothing else is kept then.
func (in *input) put(p []byte) {
	in.start, in.end = 0, copy(in.buf[:], p)
}

// fill reads what is there, at least one byte. It is called with fewer bytes kept than fit.
func (c *conn) fill() error {
	in := &c.in
	in.end = copy(in.buf[:], in.buf[in.start:in.end])
	in.start = 0
	n, err := c.readSome(in.buf[in.end:])
	in.end += n
	return err
}

// readSome reads at least one byte or gives an error. Answers that wait for company go out before.
func (c *conn) readSome(p []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	n, err := c.nc.Read(p)
	if n > 0 {
		err = nil
	}
	return n, err
}

// readFrame reads one length-prefixed frame into a pooled buffer, which the caller frees. io.EOF comes
// only between frames.
func (c *conn) readFrame() (*buffer, error) {
	for c.in.len() == 0 {
		if err := c.fill(); err != nil {
			return nil, goneUnless(err, io.EOF)
		}
	}
	if c.in.len() < lengthBytes {
		c.readDeadline.Store(c.transferDeadline(lengthBytes))
		for c.in.len() < lengthBytes {
			if err := c.fill(); err != nil {
				return nil, cutShort(err, lengthBytes)
			}
		}
	}
	var prefix [lengthBytes]byte
	c.in.take(prefix[:])
	size, err := c.frameSize(prefix)
	if err != nil {
		return nil, err
	}
	if c.in.len() < size {
		c.readDeadline.Store(c.transferDeadline(int64(size)))
		defer c.readDeadline.Store(0)
	}
	return c.readBody(size)
}

// lengthBytes is the size of a frame's length prefix.
const lengthBytes = 4

// headerBytesMin is a request header without a client id: key, version, correlation id.
const headerBytesMin = 8

// frameSize reads the prefix; what is no size may be recognised as another protocol's first bytes.
func (c *conn) frameSize(prefix [lengthBytes]byte) (int, error) {
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

// readBody reads size bytes, with memory that grows as they arrive, and what comes behind them when it
// is there already.
func (c *conn) readBody(size int) (*buffer, error) {
	if c.in.len() < size {
		if err := c.flush(); err != nil { // taking memory may have to wait
			return nil, err
		}
	}
	b, err := c.s.budget.buffer(c.ctx, min(size, max(firstBytes, c.usual)))
	if err != nil {
		return nil, err
	}
	b.bytes = b.bytes[:c.in.take(b.bytes[:min(size, cap(b.bytes))])]
	for len(b.bytes) < size {
		have := len(b.bytes)
		if have == cap(b.bytes) {
			if err := b.grow(c.ctx, size); err != nil {
				b.free()
				return nil, err
			}
		}
		n, err := c.readSome(b.bytes[have:min(cap(b.bytes), size+aheadBytes)])
		if err != nil {
			b.free()
			return nil, cutShort(err, size)
		}
		if have+n > size {
			c.in.put(b.bytes[size : have+n : have+n])
			n = size - have
		}
		b.bytes = b.bytes[:have+n]
	}
	c.usual = min(size, classBytesMax)
	return b, nil
}

// goneUnless marks err as the peer's going away, unless it is expected or ours.
func goneUnless(err, expected error) error {
	if err == expected || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) || errors.Is(err, errGone) {
		return err
	}
	return fmt.Errorf("%w: %w", errGone, err)
}

func cutShort(err error, size int) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errGone) {
		return err
	}
	return fmt.Errorf("%w of %d bytes: %w", ErrCutShort, size, err)
}
