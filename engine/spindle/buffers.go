package spindle

import (
	"net"
	"slices"
	"sync"

	"platter/engine/spindle/lane"
	"platter/io/disk"
)

// chunkBytes is the size of the buffers that cold data is read into where Params.Buffers says so.
const chunkBytes = 1 << 20

// chunk is a part of a file in memory of ours. Its fields are guarded by the spindle's lock, but for the bytes, which do not change
// once it is in a file's list.
type chunk struct {
	pos  int64
	p    []byte
	need int64 // bytes that were not dropped
	refs int   // of those who read from it
	left bool  // it is in no list any more
}

func (c *chunk) end() int64 { return c.pos + int64(len(c.p)) }

var chunkPool = sync.Pool{New: func() any { b := make([]byte, chunkBytes); return &b }}

func newChunk(pos, n int64) *chunk {
	return &chunk{pos: pos, p: (*chunkPool.Get().(*[]byte))[:n]}
}

// free gives the memory back.
func (c *chunk) free() {
	b := c.p[:chunkBytes]
	c.p = nil
	chunkPool.Put(&b)
}

// readChunks reads a run past the page cache, in batches of FlightBytes, of twice as much where it need not be gentle. The
// chunks are the caller's.
func (sp *Spindle) readChunks(f disk.File, r lane.Run, sent func()) (chunks []*chunk, got int64) {
	batch := max(sp.p.FlightBytes, chunkBytes)
	if !r.Gentle {
		batch *= 2
	}
	for got < r.N {
		if r.Gentle {
			sp.yield()
		}
		want := min(r.N-got, batch)
		if got+want == r.N && !r.Gentle {
			sent() // the last batch: the device is given it now
		}
		more, m := sp.readBatch(f, r.Pos+got, want)
		chunks, got = append(chunks, more...), got+m
		if m < want {
			break
		}
	}
	return chunks, got
}

func (sp *Spindle) readBatch(f disk.File, pos, n int64) (chunks []*chunk, got int64) {
	var reads []disk.Read
	for at := pos; at < pos+n; at += chunkBytes {
		c := newChunk(at, min(chunkBytes, pos+n-at))
		chunks = append(chunks, c)
		reads = append(reads, disk.Read{File: f, Buf: c.p, Pos: at})
	}
	sp.fs.ReadBatch(reads, true)
	for i, r := range reads {
		got += int64(r.N)
		if r.N == len(r.Buf) {
			continue
		}
		chunks[i].p = chunks[i].p[:r.N]
		for _, c := range chunks[i+1:] {
			c.free()
		}
		if r.N == 0 {
			chunks[i].free()
			return chunks[:i], got
		}
		return chunks[:i+1], got
	}
	return chunks, got
}

// keep takes chunks into a file's list; mu is held.
func (t *tracked) keep(chunks []*chunk) {
	for _, c := range chunks {
		c.need = int64(len(c.p))
	}
	t.chunks = append(t.chunks, chunks...)
}

// leave takes note that a range is not needed any more: chunks of which nothing is go. With cut, all go that reach into it: other bytes
// may stand there by now. mu is held.
func (t *tracked) leave(pos, end int64, cut bool) {
	t.chunks = slices.DeleteFunc(t.chunks, func(c *chunk) bool {
		over := min(c.end(), end) - max(c.pos, pos)
		if over <= 0 {
			return false
		}
		c.need -= over
		if !cut && c.need > 0 {
			return false
		}
		c.left = true
		if c.refs == 0 {
			c.free()
		}
		return true
	})
}

// pinned is a part of a file that is in memory, until release.
type pinned struct {
	sp     *Spindle
	chunks []*chunk
	parts  net.Buffers
}

// pin finds [pos, pos+n) in memory; nil: it is not all there.
func (sp *Spindle) pin(t *tracked, pos, n int64) *pinned {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	x := &pinned{sp: sp}
	for at := pos; at < pos+n; {
		c := t.chunkAt(at)
		if c == nil {
			x.unpin()
			return nil
		}
		c.refs++
		x.chunks = append(x.chunks, c)
		end := min(c.end(), pos+n)
		x.parts = append(x.parts, c.p[at-c.pos:end-c.pos])
		at = end
	}
	return x
}

func (t *tracked) chunkAt(pos int64) *chunk {
	for _, c := range t.chunks {
		if c.pos <= pos && pos < c.end() {
			return c
		}
	}
	return nil
}

func (x *pinned) release() {
	x.sp.mu.Lock()
	defer x.sp.mu.Unlock()
	x.unpin()
}

func (x *pinned) unpin() {
	for _, c := range x.chunks {
		if c.refs--; c.refs == 0 && c.left {
			c.free()
		}
	}
}
