package spindle

import (
	"sync"
	"sync/atomic"
	"time"

	"platter/engine/spindle/lane"
	"platter/io/disk"
)

const (
	// dirtyFor is how long the kernel keeps pages dirty (dirty_expire_centisecs), flushedAfter when they are surely written.
	dirtyFor     = 30 * time.Second
	flushedAfter = 4 * dirtyFor
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
	hot   recent // by the bytes that the device has taken: surely in the cache
	dirty recent // by time: perhaps not on the device
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
	t.hot.wrote(pos, total, t.sp.p.HotBytes/2)
	t.dirty.wrote(pos, now, int64(dirtyFor))
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

// limit is where the lane must stop reading: it would drop what it has read, and dropping what is dirty flushes it,
// short.
func (t *tracked) limit(f disk.File) (int64, error) {
	now := int64(t.sp.now())
	t.mu.Lock()
	pos, ok := t.dirty.start(now, int64(flushedAfter))
	t.mu.Unlock()
	if ok {
		return pos, nil
	}
	return f.Size()
}

// cut forgets what was written at or above size.
func (t *tracked) cut(size int64) {
	t.mu.Lock()
	t.hot.cut(size)
	t.dirty.cut(size)
	t.mu.Unlock()
	t.sp.forget(t, size)
}

// recent is the end of a file as far as it was written lately, by some measure that grows: in two generations, so that its
// start moves on while the file grows.
type recent struct{ now, old generation }

// generation is the file from from on, whose oldest byte was written at at.
type generation struct {
	from, at int64
	valid    bool
}

// wrote takes note of a write at pos. A generation lasts for step.
func (r *recent) wrote(pos, at, step int64) {
	if !r.now.valid || at-r.now.at > step {
		r.old = r.now
		r.now = generation{from: pos, at: at, valid: true}
	}
}

// start is where the oldest generation begins that is not older than age; ok is false when there is none.
func (r *recent) start(at, age int64) (pos int64, ok bool) {
	for _, g := range []generation{r.old, r.now} {
		if g.valid && at-g.at <= age {
			return g.from, true
		}
	}
	return 0, false
}

func (r *recent) cut(size int64) {
	for _, g := range []*generation{&r.old, &r.now} {
		g.from = min(g.from, size)
	}
}

// isResident asks whether all of the range is in the page cache; where nobody can tell it counts as being there.
func isResident(f disk.File, pos, n int64) bool {
	have, err := f.Resident(pos, n)
	return err != nil || have >= n
}
