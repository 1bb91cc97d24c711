package batch

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/pierrec/lz4/v4"
)

const (
	// chunkBytes is what an inflater gives at a time, where its codec leaves the choice.
	chunkBytes = 64 << 10
	// keepBytesMax is the largest buffer that goes back to a pool with its inflater.
	keepBytesMax = 4 << 20
)

// Inflating keeps a processor busy, so more at once gain nothing, and each takes memory: up to some
// 10 MiB, or up to the bound when it needs a buffer of more than keepBytesMax. So bombs on many
// connections cost time, not memory.
var (
	inflateSlots = make(chan struct{}, 2*max(2, runtime.GOMAXPROCS(0)))
	largeSlots   = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))
)

// inflater gives a compressed payload's bytes in chunks, up to a bound. It comes from a pool of its
// codec, decoder and buffers included, and goes back there.
type inflater struct {
	codec   Codec
	bound   int64
	left    int64 // what the bound leaves
	src     bytes.Reader
	payload []byte
	rest    []byte // of the payload (snappy), or nil
	buf     []byte // the chunk that was given last, and room for the next
	large   bool   // holds one of largeSlots

	gz *gzip.Reader
	lz *lz4.Reader
	zd zstdDecoders
	r  io.Reader // whichever of the decoders streams; nil: the next chunk is the end
}

var inflaters [Zstd + 1]sync.Pool

// openInflater starts on a payload, which must stay unchanged until close. bound 0 is
// DefaultDecompressedBytesMax. The codec is a valid one, and not None. It waits for its turn: whoever
// holds an inflater must not open another.
func openInflater(c Codec, payload []byte, bound int64) (*inflater, error) {
	inflateSlots <- struct{}{}
	in, _ := inflaters[c].Get().(*inflater)
	if in == nil {
		in = &inflater{codec: c}
	}
	if bound <= 0 {
		bound = DefaultDecompressedBytesMax
	}
	in.bound, in.left, in.payload = bound, bound, payload
	in.src.Reset(payload)
	if err := in.open(); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *inflater) open() error {
	switch in.codec {
	case Gzip:
		return in.openGzip()
	case Snappy:
		in.rest = in.payload
		return in.openSnappy()
	case LZ4:
		return in.openLZ4()
	case Zstd:
		return in.openZstd()
	default:
		return bad(ErrCodec, posAttributes, "attributes", "name codec %d", in.codec)
	}
}

// next gives the next bytes, valid until the call after; io.EOF at the end.
func (in *inflater) next() ([]byte, error) {
	switch {
	case in.codec == Snappy:
		return in.nextSnappy()
	case in.codec == Zstd && in.zd.all != nil:
		return in.zd.takeAll()
	default:
		return in.nextStream()
	}
}

// nextStream fills the buffer from the decoder.
func (in *inflater) nextStream() ([]byte, error) {
	if in.r == nil {
		return nil, io.EOF
	}
	in.grow(chunkBytes)
	n := 0
	for n < len(in.buf) {
		m, err := in.r.Read(in.buf[n:])
		n += m
		if err == io.EOF {
			in.r = nil
			break
		}
		if err != nil {
			return nil, in.failed(err)
		}
	}
	if n == 0 {
		return nil, io.EOF
	}
	if err := in.spend(int64(n)); err != nil {
		return nil, err
	}
	return in.buf[:n], nil
}

// spend takes n bytes off the bound.
func (in *inflater) spend(n int64) error {
	if n > in.left {
		return in.bomb()
	}
	in.left -= n
	return nil
}

func (in *inflater) bomb() error {
	return bad(ErrBomb, HeaderBytes, in.codec.String(), "payload of %d bytes holds more than %d", len(in.payload), in.bound)
}

func (in *inflater) failed(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	var c *CorruptError
	if errors.As(err, &c) {
		return err
	}
	return bad(ErrInflate, HeaderBytes, in.codec.String(), "payload of %d bytes: %v", len(in.payload), err)
}

// grow makes the buffer at least n bytes long.
func (in *inflater) grow(n int) {
	if cap(in.buf) < n {
		if n > keepBytesMax {
			in.takeLarge()
		}
		in.buf = make([]byte, n)
	}
	in.buf = in.buf[:n]
}

func (in *inflater) takeLarge() {
	if !in.large {
		largeSlots <- struct{}{}
		in.large = true
	}
}

// close gives decoder and buffers back. The last chunk is invalid from here on.
func (in *inflater) close() {
	if in.large {
		in.large = false
		<-largeSlots
	}
	if cap(in.buf) > keepBytesMax {
		in.buf = nil
	}
	if in.lz != nil {
		in.lz.Reset(nil)
	}
	in.zd.release()
	in.payload, in.rest, in.r = nil, nil, nil
	in.src.Reset(nil)
	inflaters[in.codec].Put(in)
	<-inflateSlots
}

// openGzip accepts concatenated members, as java.util.zip.GZIPInputStream does.
func (in *inflater) openGzip() error {
	if in.gz == nil {
		in.gz = new(gzip.Reader)
	}
	if err := in.gz.Reset(&in.src); err != nil {
		return in.failed(err)
	}
	in.r = in.gz
	return nil
}
