package spindle

import (
	"sync"
	"sync/atomic"

	"platter/engine/spindle/lane"
	"platter/io/disk"
)

// tracked is one .log file, however many have it open.
type tracked struct {
	id    lane.FileID
	sp    *Spindle
	set   *Set
	known atomic.Bool // the lane knows it

	wroteAt atomic.Int64 // when last, in the lane's time
	chunks  []*chunk     // what of it is in memory of ours; guarded by the spindle's lock

	mu    sync.Mutex
	path  string // "": it was removed
	opens int    // guarded by Set.mu
	hot   hot
	// behind is how far what was appended was written behind, behindEnd where the last append ended.
	behind, behindEnd int64
}

// name is where the file is now.
func (t *tracked) name() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.path
}

func (t *tracked) rename(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.path = path
}

// wrote takes note of a write, so that its readers are let through without a question.
func (t *tracked) wrote(pos, n int64) {
	total := t.sp.written.Add(n)
	now := int64(t.sp.now())
	t.sp.wroteAt.Store(now)
	t.wroteAt.Store(now)
	t.mu.Lock()
	t.hot.wrote(pos, total, t.sp.p.HotBytes)
	t.mu.Unlock()
}

// hotFrom is where what was written lately starts; ok is false when nothing was.
func (t *tracked) hotFrom() (pos int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hot.start(t.sp.written.Load(), t.sp.p.HotBytes)
}

// isHot says whether what stands at pos was written lately.
func (t *tracked) isHot(pos int64) bool {
	from, ok := t.hotFrom()
	return ok && pos >= from
}

// limit is where the lane must stop reading.
func (t *tracked) limit(f disk.File) (int64, error) {
	if pos, ok := t.hotFrom(); ok {
		return pos, nil
	}
	return f.Size()
}

// cut forgets what was written at or above size.
func (t *tracked) cut(size int64) {
	t.mu.Lock()
	t.hot.cut(size)
	t.mu.Unlock()
	t.sp.forget(t, size)
}

// hot is the end of a file as far as it was written lately, in two generations, so that its start moves on while
// the file grows. Time is counted in bytes that the device has taken.
type hot struct {
	now, old generation
}

// generation is the file from from on, whose oldest byte was written when the device had taken since bytes.
type generation struct {
	from, since int64
	valid       bool
}

func (h *hot) wrote(pos, total, hotBytes int64) {
	if !h.now.valid || total-h.now.since > hotBytes/2 {
		h.old = h.now
		h.now = generation{from: pos, since: total, valid: true}
	}
}

func (h *hot) start(total, hotBytes int64) (pos int64, ok bool) {
	for _, g := range []generation{h.old, h.now} {
		if g.valid && total-g.since <= hotBytes {
			return g.from, true
		}
	}
	return 0, false
}

func (h *hot) cut(size int64) {
	if h.now.valid && h.now.from > size {
		h.now.from = size
	}
	if h.old.valid && h.old.from > size {
		h.old.from = size
	}
}

// isResident asks whether all of the range is in the page cache; where nobody can tell it counts as being there.
func isResident(f disk.File, pos, n int64) bool {
	have, err := f.Resident(pos, n)
	return err != nil || have >= n
}
