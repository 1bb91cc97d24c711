package batch

import (
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// zstdAllBytes is the room in which a payload is first inflated at one go, which is quickest and
	// needs no window. It holds any batch that a client filled up to 1 MiB before it compressed.
	zstdAllBytes = 1<<20 + 64<<10
	// zstdWindowBytesMax is the largest window that pooled stream decoders hold: RFC 8878 wants 8 MiB.
	zstdWindowBytesMax = 8 << 20
	// zstdLargeWindowBytesMax is what Java's reader accepts at most, and level 22 announces.
	zstdLargeWindowBytesMax = 128 << 20
)

// largeWindow is held by whoever uses a window of more than zstdWindowBytesMax, and largeZstd keeps its
// decoder for the next one, as long as the garbage collector lets it.
var (
	largeWindow = make(chan struct{}, 1)
	largeZstd   sync.Pool
)

// zstdDecoders are made when first needed and kept with their inflater, but for large.
type zstdDecoders struct {
	once   *zstd.Decoder // into room that is at hand, any window
	stream *zstd.Decoder // windows up to zstdWindowBytesMax
	large  *zstd.Decoder // any window; goes with largeWindow
	room   []byte
	all    []byte // the inflated bytes when once did it; nil: stream
}

func newZstd(windowBytesMax uint64) *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), // in the caller's goroutine
		zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxWindow(windowBytesMax))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}

// openZstd accepts several frames one behind the other, and skippable ones, as zstd-jni does.
func (in *inflater) openZstd() error {
	var h zstd.Header
	if err := h.Decode(in.payload); err != nil {
		return in.failed(err)
	}
	if h.HasFCS && h.FrameContentSize > uint64(in.left) {
		return in.bomb()
	}
	if (!h.HasFCS || h.FrameContentSize <= zstdAllBytes) && len(in.payload) <= zstdAllBytes/2 && in.zstdAll() {
		return in.spend(int64(len(in.zd.all)))
	}
	return in.zstdStream(max(h.WindowSize, windowOfSegment(&h)))
}

// windowOfSegment is the window of a frame that is a single segment: all of it.
func windowOfSegment(h *zstd.Header) uint64 {
	if h.SingleSegment {
		return h.FrameContentSize
	}
	return 0
}

// zstdAll tries to inflate at one go. When that fails, for want of room or whatever it may be (the
// decoder does not always tell), a stream will say why.
func (in *inflater) zstdAll() bool {
	d := &in.zd
	if d.once == nil {
		d.once = newZstd(zstdLargeWindowBytesMax)
		d.room = make([]byte, 0, zstdAllBytes)
	}
	p, err := d.once.DecodeAll(in.payload, d.room)
	if err != nil {
		return false
	}
	d.all = p
	return true
}

// takeAll is next for what zstdAll has done.
func (d *zstdDecoders) takeAll() ([]byte, error) {
	p := d.all
	d.all = d.all[:0]
	if len(p) == 0 {
		return nil, io.EOF
	}
	return p, nil
}

// zstdStream starts a stream.
func (in *inflater) zstdStream(windowBytes uint64) error {
	d := in.zd.forWindow(windowBytes)
	if err := d.Reset(&in.src); err != nil {
		return in.failed(err)
	}
	in.r = d
	return nil
}

func (d *zstdDecoders) forWindow(windowBytes uint64) *zstd.Decoder {
	if windowBytes <= zstdWindowBytesMax {
		if d.stream == nil {
			d.stream = newZstd(zstdWindowBytesMax)
		}
		return d.stream
	}
	largeWindow <- struct{}{}
	if d.large, _ = largeZstd.Get().(*zstd.Decoder); d.large == nil {
		d.large = newZstd(zstdLargeWindowBytesMax)
	}
	return d.large
}

// release lets go of the payload. The error of Reset would be that a decoder was closed, which nobody does.
func (d *zstdDecoders) release() {
	d.all = nil
	if d.stream != nil {
		_ = d.stream.Reset(nil)
	}
	if d.large != nil {
		_ = d.large.Reset(nil)
		largeZstd.Put(d.large)
		d.large = nil
		<-largeWindow
	}
}
