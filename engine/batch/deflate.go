package batch

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// deflater compresses into a writer. Reset starts anew, Close ends the stream.
type deflater interface {
	io.WriteCloser
	Reset(io.Writer)
}

// deflaters holds pools by codec and level.
var deflaters sync.Map // deflaterKey → *sync.Pool

type deflaterKey struct {
	codec Codec
	level int
}

// deflateSlots bounds how many compressors are at work: like inflating, it is bound by the processor.
var deflateSlots = make(chan struct{}, 2*max(2, runtime.GOMAXPROCS(0)))

// zstdWriteWindowBytes is what Java's producer has by default (level 3); readers need as much memory.
const zstdWriteWindowBytes = 2 << 20

// deflate runs fill on a compressing writer over dst. Level 0 is the codec's default.
func deflate(dst *bytes.Buffer, c Codec, level int, fill func(io.Writer) error) error {
	if c == None {
		return fill(dst)
	}
	deflateSlots <- struct{}{}
	defer func() { <-deflateSlots }()
	key := deflaterKey{c, level}
	v, ok := deflaters.Load(key)
	if !ok {
		v, _ = deflaters.LoadOrStore(key, new(sync.Pool))
	}
	pool := v.(*sync.Pool)
	d, _ := pool.Get().(deflater)
	if d == nil {
		var err error
		if d, err = newDeflater(key); err != nil {
			return err
		}
	}
	d.Reset(dst)
	err := fill(d)
	if err == nil {
		err = d.Close()
	}
	d.Reset(nil)
	pool.Put(d)
	return err
}

func newDeflater(key deflaterKey) (deflater, error) {
	switch key.codec {
	case Gzip:
		if key.level == 0 {
			key.level = gzip.DefaultCompression
		}
		return gzip.NewWriterLevel(nil, key.level)
	case Snappy:
		return new(xerialWriter), nil
	case LZ4:
		return newLZ4Writer(key.level)
	case Zstd:
		if key.level == 0 {
			key.level = 3
		}
		return zstd.NewWriter(nil,
			zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(zstdWriteWindowBytes),
			zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(key.level)))
	default:
		return nil, bad(ErrCodec, -1, "codec", "is %d", key.codec)
	}
}

// newLZ4Writer writes frames as Java's producer does: independent blocks of 64 KiB, no checksum but the
// header's. Levels are Kafka's 1 to 17, of which 9, its default, means the quick compressor.
func newLZ4Writer(level int) (deflater, error) {
	w := lz4.NewWriter(nil)
	l := lz4.Fast
	if level > 0 && level != 9 {
		l = lz4.CompressionLevel(1 << (8 + min(level, 9)))
	}
	err := w.Apply(
		lz4.BlockSizeOption(lz4.Block64Kb),
		lz4.ChecksumOption(false),
		lz4.ConcurrencyOption(1),
		lz4.CompressionLevelOption(l))
	return w, err
}

// xerialBlockBytes is snappy-java's block size.
const xerialBlockBytes = 32 << 10

// xerialWriter writes snappy in the framing that every Kafka client reads (inflate_snappy.go).
type xerialWriter struct {
	dst    io.Writer
	header bool // was written
	block  []byte
	out    []byte
}

func (w *xerialWriter) Reset(dst io.Writer) {
	w.dst, w.header, w.block = dst, false, w.block[:0]
}

func (w *xerialWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		step := min(len(p), xerialBlockBytes-len(w.block))
		w.block = append(w.block, p[:step]...)
		p = p[step:]
		if len(w.block) == xerialBlockBytes {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (w *xerialWriter) Close() error {
	if len(w.block) == 0 && w.header {
		return nil
	}
	return w.flush()
}

func (w *xerialWriter) flush() error {
	w.out = w.out[:0]
	if !w.header {
		w.header = true
		w.out = append(w.out, xerialMagic...)
		w.out = append(w.out, 0, 0, 0, 1, 0, 0, 0, 1)
	}
	if len(w.block) > 0 {
		at := len(w.out)
		room := at + 4 + snappy.MaxEncodedLen(len(w.block))
		if cap(w.out) < room {
			w.out = append(make([]byte, 0, room), w.out...)
		}
		n := len(snappy.Encode(w.out[at+4:room], w.block))
		w.out = w.out[:at+4+n]
		binary.BigEndian.PutUint32(w.out[at:], uint32(n))
		w.block = w.block[:0]
	}
	_, err := w.dst.Write(w.out)
	return err
}
