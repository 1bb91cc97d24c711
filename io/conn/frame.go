package conn

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"platter/io/buf"
)

// A frame, as Kafka and ZooKeeper send it:
//
//	+--------------------+-----------------+
//	| length: int32, big | length bytes    |
//	| endian             |                 |
//	+--------------------+-----------------+

var (
	// ErrFrameSize: the announced length is outside the bounds.
	ErrFrameSize = errors.New("frame size is out of bounds")
	// ErrTLS: the peer speaks TLS to a plaintext port.
	ErrTLS = errors.New("a TLS hello on a plaintext listener")
	// ErrHTTP: the peer speaks HTTP.
	ErrHTTP = errors.New("an HTTP request on a listener of another protocol")
	// ErrCutShort: the connection ended, or failed, within a frame; wraps the cause.
	ErrCutShort = errors.New("connection ended inside a frame")
)

const (
	prefixBytes = 4
	// FirstBytes is what is committed for a frame of a peer that has shown nothing yet.
	FirstBytes = 64 << 10
	// growth bounds what is committed to that many times what has arrived.
	growth = 4
	// trustMax bounds what a peer gets for its record.
	trustMax = 16 << 20
	// readBufferDefault is FrameConfig.ReadBufferBytes when it is zero.
	readBufferDefault = 4 << 10
)

// FrameConfig is how a connection's frames are read.
type FrameConfig struct {
	// Pool gives the buffers.
	Pool *buf.Pool
	// BytesMin and BytesMax bound the length that a peer may announce.
	BytesMin, BytesMax int
	// ReadBufferBytes is what a connection holds while it is idle, 4 KiB when zero. What of a frame lies
	// in it is copied out; the rest is read straight into the frame.
	ReadBufferBytes int
	// Progress, if set, is told what is on its way: 4 when the first byte of a length has come, the
	// length once it is known, and 0 when the frame is whole or lost. From it a server sets a deadline.
	Progress func(bytes int)
}

// FrameReader reads the frames of one connection; one goroutine at a time.
//
// Memory for a frame is committed as its bytes arrive: none for the length alone, then 64 KiB, then at
// most four times what has come, so that an announced length costs nothing. A peer that has sent a frame
// of some size is trusted with that much at once (16 MiB at most): a steady producer's frames are read
// straight into one buffer each.
type FrameReader struct {
	ctx     context.Context
	br      *bufio.Reader
	cfg     FrameConfig
	trusted int
	begun   bool // a frame has been read: what comes is this protocol
}

// NewFrameReader reads from r. The end of ctx ends waits for the pool, not reads: close the connection
// for that.
func NewFrameReader(ctx context.Context, r io.Reader, cfg FrameConfig) *FrameReader {
	if cfg.ReadBufferBytes == 0 {
		cfg.ReadBufferBytes = readBufferDefault
	}
	if cfg.Progress == nil {
		cfg.Progress = func(int) {}
	}
	return &FrameReader{ctx: ctx, br: bufio.NewReaderSize(r, cfg.ReadBufferBytes), cfg: cfg, trusted: FirstBytes}
}

// Next returns the next frame without its length; the caller releases it. An error before the first
// byte of a frame is the reader's own (io.EOF at a clean end), and Next may be called again after a
// passed read deadline. After that ErrCutShort says that the frame did not come whole, ErrFrameSize,
// ErrTLS and ErrHTTP what the peer did wrong; net.ErrClosed and os.ErrDeadlineExceeded come as they are,
// and so does the error of ctx, if it ended the wait for memory.
func (r *FrameReader) Next() (*buf.Buffer, error) {
	if _, err := r.br.Peek(1); err != nil {
		return nil, err
	}
	r.cfg.Progress(prefixBytes)
	defer r.cfg.Progress(0)
	prefix, err := r.br.Peek(prefixBytes)
	if err != nil {
		return nil, cutShort(err, prefixBytes)
	}
	size, err := r.size(prefix)
	if err != nil {
		return nil, err
	}
	r.br.Discard(prefixBytes)
	r.cfg.Progress(size)
	frame, err := r.body(size)
	if err != nil {
		return nil, err
	}
	r.begun = true
	r.trusted = max(FirstBytes, min(size, trustMax), r.trusted-r.trusted/64) // forgotten slowly
	return frame, nil
}

// Peek waits for the four bytes that begin the next frame and leaves them there.
func (r *FrameReader) Peek() ([]byte, error) {
	if _, err := r.br.Peek(1); err != nil {
		return nil, err
	}
	p, err := r.br.Peek(prefixBytes)
	if err != nil {
		return nil, cutShort(err, prefixBytes)
	}
	return p, nil
}

// Ready reports whether Next would return without reading from the connection. A frame above the read
// buffer's size is never ready.
func (r *FrameReader) Ready() bool {
	have := r.br.Buffered()
	if have < prefixBytes {
		return false
	}
	prefix, _ := r.br.Peek(prefixBytes)
	return have-prefixBytes >= int(binary.BigEndian.Uint32(prefix))
}

func (r *FrameReader) size(prefix []byte) (int, error) {
	size := int32(binary.BigEndian.Uint32(prefix))
	bad := size < 0 || int(size) < r.cfg.BytesMin || int(size) > r.cfg.BytesMax
	if bad || !r.begun {
		// As lengths these are 369 MB and more: nothing that a client would begin with.
		switch {
		case prefix[0] == 0x16 && prefix[1] == 3: // handshake record, SSL 3.0 to TLS 1.3
			return 0, ErrTLS
		case isHTTP(string(prefix)):
			return 0, ErrHTTP
		}
	}
	if bad {
		return 0, fmt.Errorf("%w: %d bytes, allowed are %d to %d", ErrFrameSize, size, r.cfg.BytesMin, r.cfg.BytesMax)
	}
	return int(size), nil
}

func isHTTP(prefix string) bool {
	switch prefix {
	case "GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "PATC", "CONN", "PRI ":
		return true
	}
	return false
}

func (r *FrameReader) body(size int) (*buf.Buffer, error) {
	if size > 0 {
		if _, err := r.br.Peek(1); err != nil {
			return nil, cutShort(err, size)
		}
	}
	frame, err := r.cfg.Pool.GetWait(r.ctx, min(size, r.trusted))
	if err != nil {
		return nil, err
	}
	for have := 0; ; {
		if _, err := io.ReadFull(r.br, frame.B[have:]); err != nil {
			frame.Release()
			return nil, cutShort(err, size)
		}
		have = len(frame.B)
		if have == size {
			return frame, nil
		}
		if err := frame.Grow(r.ctx, min(size, have*growth), have); err != nil {
			frame.Release()
			return nil, err
		}
	}
}

// cutShort is the error of a read within a frame of size bytes.
func cutShort(err error, size int) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w of %d bytes: %w", ErrCutShort, size, err)
}
