package hddsim

import "slices"

// writeCache holds writes that were reported done before they are on the medium.
type writeCache struct {
	entries []entry // oldest first
	writing *entry  // under the head now
	bytes   int64   // of all of them
	made    uint64
}

type entry struct {
	pos, len int64
	n        uint64 // of the newest write in it
}

// mergeMax is the longest run that adjoining writes are joined to.
const mergeMax = 1 << 20

func (c *writeCache) empty() bool { return len(c.entries) == 0 && c.writing == nil }

// tight: three quarters are full.
func (c *writeCache) tight(capacity int64) bool { return c.bytes > capacity/4*3 }

// take holds a write, if there is room.
func (c *writeCache) take(r *Request, capacity int64) bool {
	if c.bytes+r.Len > capacity {
		return false
	}
	c.made++
	c.bytes += r.Len
	if last := len(c.entries) - 1; last >= 0 {
		if e := &c.entries[last]; e.pos+e.len == r.Pos && e.len+r.Len <= mergeMax {
			e.len, e.n = e.len+r.Len, c.made
			return true
		}
	}
	c.entries = append(c.entries, entry{r.Pos, r.Len, c.made})
	return true
}

// oldest is the number before which all writes are on the medium.
func (c *writeCache) oldest() uint64 {
	n := c.made + 1
	if c.writing != nil {
		n = c.writing.n
	}
	for _, e := range c.entries {
		n = min(n, e.n)
	}
	return n
}

// cached ends the writing of an entry: a flush may be done, and a write that found no room may be let in.
func (d *Drive) cached() {
	d.cache.bytes -= d.cache.writing.len
	d.cache.writing = nil
	oldest := d.cache.oldest()
	var done []func()
	d.flushes = slices.DeleteFunc(d.flushes, func(f flushing) bool {
		if f.upTo >= oldest {
			return false
		}
		done = append(done, f.r.Done)
		return true
	})
	d.queue = slices.DeleteFunc(d.queue, func(r *Request) bool {
		if r.Kind != Write || r.FUA || !d.cache.take(r, d.g.p.WriteCacheBytes) {
			return false
		}
		done = append(done, r.Done)
		return true
	})
	d.next()
	for _, f := range done {
		f()
	}
}
