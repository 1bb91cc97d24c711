package spindle

import (
	"io"
	"sync"
	"time"

	"platter/engine/spindle/lane"
	"platter/io/disk"
)

// slowPartBytes is one of the reads that a slow reader's batch is made of.
const slowPartBytes = 512 << 10

// SlowReader reads a file without haste. See Slow.
type SlowReader struct {
	f     disk.File
	w     *file // nil: f is no Set's, and is just read
	buf   *[]byte
	from  int64
	have  []byte
	batch []disk.Read
}

var slowBuffers sync.Pool // of *[]byte

// Slow gives f to a reader that has time, such as a scrub: what is cold is read in runs of Params.BackgroundBytes, when nobody
// else wants the device (but within seconds all the same), and does not stay in the page cache. Not safe for
// concurrent use; Close gives its buffer back, and f is still the caller's.
func Slow(f disk.File) *SlowReader {
	w, _ := f.(*file)
	return &SlowReader{f: f, w: w}
}

// Close ends the use of the reader.
func (r *SlowReader) Close() {
	if r.buf != nil {
		slowBuffers.Put(r.buf)
	}
	*r = SlowReader{}
}

// ReadAt is io.ReaderAt's.
func (r *SlowReader) ReadAt(p []byte, pos int64) (n int, err error) {
	if r.w == nil {
		return r.f.ReadAt(p, pos)
	}
	for n < len(p) {
		at := pos + int64(n)
		if at < r.from || at >= r.from+int64(len(r.have)) {
			if err := r.fill(at); err != nil {
				return n, err
			}
		}
		n += copy(p[n:], r.have[at-r.from:])
	}
	return n, nil
}

// fill reads the next run, from pos on.
func (r *SlowReader) fill(pos int64) error {
	size, err := r.w.File.Size()
	if err != nil {
		return err
	}
	if pos >= size {
		return io.EOF
	}
	if r.buf == nil {
		r.buf, _ = slowBuffers.Get().(*[]byte)
		if want := r.w.t.sp.p.BackgroundBytes; r.buf == nil || int64(len(*r.buf)) < want {
			b := make([]byte, want)
			r.buf = &b
		}
	}
	n := min(int64(len(*r.buf)), size-pos)
	warm := isResident(r.w.File, pos, n)
	r.have = nil
	if !warm {
		end := r.w.t.sp.backgroundTurn(n)
		defer end()
	}
	got, err := r.read(pos, n, !warm)
	r.from, r.have = pos, (*r.buf)[:got]
	if !warm && !r.w.t.known.Load() && !r.w.set.Caps(r.w.t.name()).DontCache {
		_ = r.w.File.Advise(pos, n, disk.DontNeed) // a hint
	}
	if got == 0 && err == nil {
		err = io.EOF
	}
	if got > 0 {
		return nil // what is wrong behind it is told when it is asked for
	}
	return err
}

// read fills the buffer, in one batch.
func (r *SlowReader) read(pos, n int64, cold bool) (got int64, err error) {
	r.batch = r.batch[:0]
	for at := int64(0); at < n; at += slowPartBytes {
		r.batch = append(r.batch, disk.Read{File: r.w.File, Buf: (*r.buf)[at:min(at+slowPartBytes, n)], Pos: pos + at})
	}
	r.w.set.FS.ReadBatch(r.batch, cold)
	for _, x := range r.batch {
		got += int64(x.N)
		if x.N < len(x.Buf) {
			return got, x.Err
		}
	}
	return got, nil
}

// backgroundTurn waits until the device may be had for a read of n bytes by somebody without haste; end gives it back.
func (sp *Spindle) backgroundTurn(n int64) (end func()) {
	if !sp.p.Cold {
		return func() {}
	}
	var wait chan struct{}
	var id lane.AskID
	var run lane.RunID
	sp.act(func(now time.Duration) {
		if sp.closed {
			return
		}
		sp.lastAsk++
		id, wait = sp.lastAsk, make(chan struct{})
		sp.waits[id] = wait
		sp.turns[id] = &run
		sp.lane.AskBackground(now, id, n)
	})
	if wait == nil {
		return func() {}
	}
	sp.await(id, wait, WaitMax)
	sp.mu.Lock()
	delete(sp.turns, id)
	given := run
	sp.mu.Unlock()
	return func() {
		if given > 0 {
			sp.done(given)
		}
	}
}
