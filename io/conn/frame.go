package conn

import (
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
	// aheadDefault is FrameConfig.AheadBytes when it is zero.
	aheadDefault = 4 << 10
)

// FrameConfig is how a connection's frames are read.
type FrameConfig struct {
	// Pool gives the buffers.
	Pool *buf.Pool
	// BytesMin and BytesMax bound the length that a peer may announce.
	BytesMin, BytesMax int
	// AheadBytes is the read-ahead, what a connection holds while it is idle; 4 KiB when zero. Small
	// frames come several a system call; of a large one little is copied, since it is read straight into
	// its own buffer, and brings the beginning of the next one along.
	AheadBytes int
	// First was read from the connection before.
	First []byte
	// Progress, if set, is told of what a frame waits for: 4 when only a part of its length has come,
	// the length when not all of that has, and after these 0 when the frame is whole or lost. From it a
	// server sets a deadline.
	Progress func(bytes int)
	// Kept, if set, is told when a frame of which Progress was told has got its first memory, which it
	// keeps until Progress(0): who still waits for some keeps none from others.
	Kept func()
	// BeforeRead, if set, is called before each read from the connection and each wait for memory, either
	// of which may take long: the time to send what was held back. Its error ends Next.
	BeforeRead func() error
}

// FrameReader reads the frames of one connection; one goroutine at a time.
//
// Memory for a frame is committed as its bytes arrive: none for the length alone, then 64 KiB, then at
// most four times what has come, so that an announced length costs nothing. A peer that has sent a frame
// of some size is trusted with that much at once (16 MiB at most): a steady producer's frames are read
// straight into one buffer each.
type FrameReader struct {
	ctx     context.Context
	src     io.Reader
	cfg     FrameConfig
	ahead   []byte // of which start to end was read and not taken
	start   int
	end     int
	trusted int
	begun   bool // a frame has been read: what comes is this protocol
	waiting bool // Progress was told
}

// NewFrameReader reads from src. The end of ctx ends waits for the pool, not reads: close the connection
// for that.
func NewFrameReader(ctx context.Context, src io.Reader, cfg FrameConfig) *FrameReader {
	if cfg.AheadBytes == 0 {
		cfg.AheadBytes = aheadDefault
	}
	r := &FrameReader{ctx: ctx, src: src, cfg: cfg, ahead: make([]byte, max(cfg.AheadBytes, prefixBytes, len(cfg.First))), trusted: FirstBytes}
	r.end = copy(r.ahead, cfg.First)
	r.cfg.First = nil
	return r
}

// Next returns the next frame without its length; the caller releases it. An error before the first
// byte of a frame is the connection's own (io.EOF at a clean end), and Next may be called again after a
// passed read deadline. Later ones: ErrCutShort says that the frame did not come whole, ErrFrameSize,
// ErrTLS and ErrHTTP what the peer did wrong; net.ErrClosed and os.ErrDeadlineExceeded come as they are,
// and so do the errors of BeforeRead and of ctx, if it ended the wait for memory.
func (r *FrameReader) Next() (*buf.Buffer, error) {
	frame, err := r.next()
	if r.waiting {
		r.waiting = false
		r.cfg.Progress(0)
	}
	return frame, err
}

func (r *FrameReader) next() (*buf.Buffer, error) {
	prefix, err := r.Peek()
	if err != nil {
		return nil, err
	}
	size, err := r.size(prefix)
	if err != nil {
		return nil, err
	}
	r.start += prefixBytes
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
	for r.buffered() < prefixBytes {
		begun := r.buffered() > 0
		if begun && !r.waiting {
			r.wait(prefixBytes)
		}
		if err := r.fill(); err != nil {
			if begun {
				err = cutShort(err, prefixBytes)
			}
			return nil, err
		}
	}
	return r.ahead[r.start : r.start+prefixBytes], nil
}

// ReadRaw fills p with the bytes that come next, whatever they are: for what is no frame.
func (r *FrameReader) ReadRaw(p []byte) error {
	n := copy(p, r.ahead[r.start:r.end])
	r.start += n
	for n < len(p) {
		m, err := r.read(p[n:])
		if err != nil {
			return cutShort(err, len(p))
		}
		n += m
	}
	return nil
}

// Ready reports whether Next would return without reading from the connection. A frame above the
// read-ahead is never ready.
func (r *FrameReader) Ready() bool {
	have := r.buffered() - prefixBytes
	return have >= 0 && have >= int(binary.BigEndian.Uint32(r.ahead[r.start:]))
}

// Empty reports whether nothing was read that Next has not given.
func (r *FrameReader) Empty() bool { return r.buffered() == 0 }

func (r *FrameReader) buffered() int { return r.end - r.start }

func (r *FrameReader) wait(bytes int) {
	if r.cfg.Progress != nil {
		r.waiting = true
		r.cfg.Progress(bytes)
	}
}

// fill reads what is there, at least one byte. It is called with fewer bytes kept than fit.
func (r *FrameReader) fill() error {
	if r.end == len(r.ahead) || r.start == r.end {
		r.start, r.end = 0, copy(r.ahead, r.ahead[r.start:r.end])
	}
	n, err := r.read(r.ahead[r.end:])
	r.end += n
	return err
}

// emptyReadsMax bounds the reads in a row that may give neither bytes nor an error.
const emptyReadsMax = 100

// read reads at least one byte or gives an error.
func (r *FrameReader) read(p []byte) (int, error) {
	if err := r.beforeRead(); err != nil {
		return 0, err
	}
	for range emptyReadsMax {
		if n, err := r.src.Read(p); n > 0 {
			return n, nil // an error that came along comes again
		} else if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

func (r *FrameReader) beforeRead() error {
	if r.cfg.BeforeRead == nil {
		return nil
	}
	if err := r.cfg.BeforeRead(); err != nil {
		return heldBack{err}
	}
	return nil
}

// heldBack is BeforeRead's error, so that it is not taken for the peer's end.
type heldBack struct{ error }

func (h heldBack) Unwrap() error { return h.error }

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

// body reads a frame's bytes, and what comes behind them when it is there already.
func (r *FrameReader) body(size int) (*buf.Buffer, error) {
	if r.buffered() < size {
		r.wait(size)
		for r.buffered() == 0 {
			if err := r.fill(); err != nil {
				return nil, cutShort(err, size)
			}
		}
		if err := r.beforeRead(); err != nil {
			return nil, err
		}
	}
	frame, err := r.cfg.Pool.GetWait(r.ctx, min(size, r.trusted))
	if err != nil {
		return nil, err
	}
	if r.waiting && r.cfg.Kept != nil {
		r.cfg.Kept()
	}
	if err := r.fillFrame(frame, size); err != nil {
		frame.Release()
		return nil, err
	}
	return frame, nil
}

func (r *FrameReader) fillFrame(frame *buf.Buffer, size int) error {
	have := copy(frame.B, r.ahead[r.start:r.end])
	r.start += have
	for have < size {
		if have == len(frame.B) {
			if err := frame.Grow(r.ctx, min(size, have*growth), have); err != nil {
				return err
			}
		}
		room := frame.B[have:]
		if len(frame.B) == size { // then everything ahead was taken: there is room for it
			room = room[:min(cap(room), size-have+len(r.ahead))]
		}
		n, err := r.read(room)
		if err != nil {
			return cutShort(err, size)
		}
		have += n
	}
	if over := have - size; over > 0 {
		r.start, r.end = 0, copy(r.ahead, frame.B[size:have])
	}
	return nil
}

// cutShort is the error of a read within a frame of size bytes.
func cutShort(err error, size int) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, new(heldBack)) {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w of %d bytes: %w", ErrCutShort, size, err)
}
