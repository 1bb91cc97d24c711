package conn

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"platter/io/buf"
)

// A frame, as Kafka and ZooKeeper send it:
//
//	+--------------------+-----------------+
//	| length: int32, big | length bytes    |
//	| endian, >= 0       |                 |
//	+--------------------+-----------------+

var (
	// ErrFrameTooLarge: the announced length is above the limit.
	ErrFrameTooLarge = errors.New("frame is too large")
	// ErrFrameNegative: the announced length is below zero.
	ErrFrameNegative = errors.New("frame has a negative length")
	// ErrTLS: the peer speaks TLS to a plaintext port.
	ErrTLS = errors.New("TLS hello on a plaintext port")
	// ErrHTTP: the peer speaks HTTP.
	ErrHTTP = errors.New("HTTP request on a port that does not speak it")
)

const (
	prefixBytes = 4
	// readBufferBytes is what a connection holds while it is idle. What of a frame lies in it is copied
	// out; the rest is read straight into the frame.
	readBufferBytes = 4 << 10
	// firstBytes is what is committed for a frame of a peer that has shown nothing yet.
	firstBytes = 64 << 10
	// growth bounds what is committed to that many times what has arrived.
	growth = 4
	// trustMax bounds what a peer gets for its record.
	trustMax = 8 << 20
	// stallDefault is FrameConfig.Stall when it is zero.
	stallDefault = 30 * time.Second
)

// FrameConfig is how a connection's frames are read.
type FrameConfig struct {
	// Pool gives the buffers.
	Pool *buf.Pool
	// BytesMax is the largest length a peer may announce.
	BytesMax int
	// Idle is how long a peer may be silent between frames; 0 is for ever.
	Idle time.Duration
	// Stall is how long a peer may be silent within a frame, and how long a frame waits for the pool's
	// budget; 0 is 30 seconds.
	Stall time.Duration
}

// FrameReader reads the frames of one connection; one goroutine at a time.
//
// Memory for a frame is committed as its bytes arrive: none for the length alone, then 64 KiB, then at
// most four times what has come, so that an announced length costs nothing. A peer that has sent a frame
// of some size is trusted with that much at once (8 MiB at most): a steady producer's frames are read
// straight into one buffer each.
type FrameReader struct {
	c       net.Conn
	br      *bufio.Reader
	cfg     FrameConfig
	trusted int
	begun   bool // a frame has been read: what comes is this protocol
	silence deadline
}

// NewFrameReader reads from c. It sets c's read deadlines.
func NewFrameReader(c net.Conn, cfg FrameConfig) *FrameReader {
	if cfg.Stall == 0 {
		cfg.Stall = stallDefault
	}
	return &FrameReader{c: c, br: bufio.NewReaderSize(c, readBufferBytes), cfg: cfg, trusted: firstBytes}
}

// Next returns the next frame without its length; the caller releases it. io.EOF is an end between two
// frames, io.ErrUnexpectedEOF one within; ErrFrameTooLarge, ErrFrameNegative, ErrTLS and ErrHTTP say
// what the peer did wrong, buf.ErrBudget and buf.ErrTooLarge that there is no room for it; else it is
// the connection's error, with a timeout when the peer was silent for too long. After an error there
// is no next frame.
func (r *FrameReader) Next() (*buf.Buffer, error) {
	prefix, err := r.Peek()
	if err != nil {
		return nil, err
	}
	size := int32(binary.BigEndian.Uint32(prefix))
	if err := r.check(prefix, size); err != nil {
		return nil, err
	}
	r.br.Discard(prefixBytes)
	frame, err := r.read(int(size))
	if err != nil {
		return nil, err
	}
	r.begun = true
	return frame, nil
}

// Peek waits for the four bytes that begin the next frame and leaves them there. io.EOF when there is
// none.
func (r *FrameReader) Peek() ([]byte, error) {
	if r.br.Buffered() == 0 {
		r.silence.set(r.c, r.cfg.Idle)
		if _, err := r.br.Peek(1); err != nil {
			return nil, err
		}
	}
	if r.br.Buffered() < prefixBytes {
		r.silence.set(r.c, r.cfg.Stall)
	}
	p, err := r.br.Peek(prefixBytes)
	return p, cutShort(err)
}

// Buffered reports whether bytes of a next frame have been read from the connection already.
func (r *FrameReader) Buffered() bool { return r.br.Buffered() > 0 }

func (r *FrameReader) check(prefix []byte, size int32) error {
	if !r.begun {
		// Neither is a length that a client begins with: 369 MB and more.
		switch {
		case prefix[0] == 0x16 && prefix[1] == 0x03:
			return ErrTLS
		case isHTTP(string(prefix)):
			return ErrHTTP
		}
	}
	switch {
	case size < 0:
		return fmt.Errorf("%w: %d", ErrFrameNegative, size)
	case int(size) > r.cfg.BytesMax:
		return fmt.Errorf("%w: %d bytes announced, at most %d", ErrFrameTooLarge, size, r.cfg.BytesMax)
	}
	return nil
}

func isHTTP(prefix string) bool {
	switch prefix {
	case "GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "PATC", "CONN", "PRI ":
		return true
	}
	return false
}

func (r *FrameReader) read(size int) (*buf.Buffer, error) {
	if size > 0 && r.br.Buffered() == 0 {
		r.silence.set(r.c, r.cfg.Stall)
		if _, err := r.br.Peek(1); err != nil {
			return nil, cutShort(err)
		}
	}
	frame, err := r.cfg.Pool.GetWait(min(size, r.trusted), r.cfg.Stall)
	if err != nil {
		return nil, err
	}
	for have := 0; ; {
		if err := r.fill(frame.B[have:]); err != nil {
			frame.Release()
			return nil, err
		}
		have = len(frame.B)
		if have == size {
			break
		}
		if err := frame.Grow(min(size, have*growth), have, r.cfg.Stall); err != nil {
			frame.Release()
			return nil, err
		}
	}
	r.trusted = max(firstBytes, min(size, trustMax), r.trusted-r.trusted/64) // forgotten slowly
	return frame, nil
}

// fill reads all of p. Every byte that comes renews the peer's time.
func (r *FrameReader) fill(p []byte) error {
	for len(p) > 0 {
		if r.br.Buffered() == 0 {
			r.silence.set(r.c, r.cfg.Stall)
		}
		n, err := r.br.Read(p)
		p = p[n:]
		if len(p) > 0 && err != nil {
			return cutShort(err)
		}
	}
	return nil
}

// cutShort is the error of a read within a frame.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// deadline sets a connection's read deadline, but not for every read: one that is nearly as far off
// will do.
type deadline struct {
	at    time.Time
	after time.Duration
}

func (d *deadline) set(c net.Conn, after time.Duration) {
	now := time.Now()
	if after == d.after && (after == 0 || d.at.Sub(now) > after-after/8) {
		return
	}
	d.after = after
	d.at = time.Time{}
	if after > 0 {
		d.at = now.Add(after)
	}
	c.SetReadDeadline(d.at)
}
