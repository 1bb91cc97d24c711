// Package frame is a reply as bytes on a connection: made of bytes in memory and of file ranges, which
// go out in order behind one length.
//
//	pos  size  field
//	  0     4  length of what follows, big endian
//	  4     …  response header and body, as net/wire encodes them
//
// Whatever is small is gathered in one pooled buffer and leaves in one write: headers, and ranges up to
// Options.CopyBytesMax, which are read into it. A larger range leaves by disk.File.SendTo, from the page
// cache where the backend can (it was measured: below 64 KiB reading and writing wins, above it sendfile),
// but for its first bytes, which leave with the headers before it. Meanwhile the socket is corked
// (TCP_CORK, tcp(7)) where segments are as small as a network's, so that nothing but the end of a reply is a
// small packet.
//
// A Reply belongs to one goroutine at a time. Its bytes and files are borrowed until Release.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"

	"github.com/valyala/bytebufferpool"

	"platter/io/disk"
)

const (
	// CopyBytesMax is the largest range that is copied instead of sent by the kernel, by default.
	CopyBytesMax = disk.SendCopyBytesMax
	// lengthBytes is the size of the length prefix.
	lengthBytes = 4
)

// ErrTooLong is a reply beyond what the 4-byte length can say.
var ErrTooLong = errors.New("reply is longer than a frame can be")

// Reply is what one request answers. The zero value is empty and ready; New takes one from a pool.
type Reply struct {
	parts    []part
	n        int64
	buffers  []*bytebufferpool.ByteBuffer
	release  []func()
	released bool
}

// part is bytes, or a file range when its File is set.
type part struct {
	p []byte
	g disk.Range
}

var replies = sync.Pool{New: func() any { return new(Reply) }}

// New takes an empty reply from the pool; Release puts it back.
func New() *Reply {
	r := replies.Get().(*Reply)
	r.released = false
	return r
}

// Bytes appends bytes that must stay unchanged until Release.
func (r *Reply) Bytes(p []byte) {
	if len(p) > 0 {
		r.parts = append(r.parts, part{p: p})
		r.n += int64(len(p))
	}
}

// Range appends a file range, whose file must stay open until Release.
func (r *Reply) Range(g disk.Range) {
	if g.Len > 0 {
		r.parts = append(r.parts, part{g: g})
		r.n += g.Len
	}
}

// Buffer takes a pooled buffer that belongs to the reply: Release gives it back. Its bytes become part
// of the reply only by Bytes, once they do not move any more.
func (r *Reply) Buffer() *bytebufferpool.ByteBuffer {
	b := bytebufferpool.Get()
	r.buffers = append(r.buffers, b)
	return b
}

// OnRelease runs f once the reply was sent or given up.
func (r *Reply) OnRelease(f func()) { r.release = append(r.release, f) }

// Len is the size in bytes behind the length prefix.
func (r *Reply) Len() int64 { return r.n }

// Options say how replies are sent.
type Options struct {
	// CopyBytesMax is the largest range that is copied; 0: the default, below 0: none is.
	CopyBytesMax int64
}

// Send writes the reply: small ranges are copied and coalesced with the bytes, large ones go by SendTo.
// A write deadline that c has is honoured. After an error c is in the middle of a frame, and of no use.
func (r *Reply) Send(c net.Conn, o Options) error {
	if r.n > math.MaxInt32 {
		return fmt.Errorf("%w: %d bytes", ErrTooLong, r.n)
	}
	if o.CopyBytesMax == 0 {
		o.CopyBytesMax = CopyBytesMax
	}
	g := newGather(c, lengthBytes+r.n, o.CopyBytesMax)
	defer g.free()
	g.buf = binary.BigEndian.AppendUint32(g.buf, uint32(r.n))
	for i := range r.parts {
		if err := g.add(&r.parts[i]); err != nil {
			return err
		}
	}
	return g.finish()
}

// Release gives everything back; called exactly once, after which the reply must not be touched.
func (r *Reply) Release() {
	if r.released {
		panic("frame: a reply was released twice")
	}
	for _, f := range r.release {
		f()
	}
	for _, b := range r.buffers {
		bytebufferpool.Put(b)
	}
	clear(r.parts)
	clear(r.release)
	clear(r.buffers)
	*r = Reply{parts: r.parts[:0], buffers: r.buffers[:0], release: r.release[:0], released: true}
	replies.Put(r)
}
