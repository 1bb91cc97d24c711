package hddsim

import (
	"slices"
	"time"
)

// flusher is the kernel's writeback: one file after the other, a bounded amount of each in its turn, from where the last
// turn ended (fs/fs-writeback.c); and what holds writers back when it cannot keep up (mm/page-writeback.c).
type flusher struct {
	queue   []*Inode // that are dirty, the longest first
	file    *Inode   // whose turn it is
	left    int64    // pages of the turn
	flying  int      // requests under way
	stepped bool     // a step is due
	ticking bool

	writers []func() // that wait for room
	slots   []func() // that wait for fewer requests

	rate      float64 // of the device, bytes a second, as it was lately
	rateSince time.Duration
	rateBytes int64
}

// writing is one request of writeback: a run of pages.
type writing struct {
	pages   span
	waiters []func()
}

// admit lets a writer go on when there is room, in order of arrival. The kernel aims at the middle between where it
// begins to slow writers and the limit, and so does this.
func (f *flusher) admit(v *Volume, then func()) {
	if len(f.writers) == 0 && f.room(v) {
		then()
		return
	}
	f.writers = append(f.writers, then)
	f.kick(v)
}

func (f *flusher) room(v *Volume) bool {
	return v.DirtyBytes()+sliceBytes <= (v.p.BackgroundBytes+3*v.p.DirtyBytes)/4
}

// release lets those writers go on that there is room for.
func (f *flusher) release(v *Volume) {
	for len(f.writers) > 0 && f.room(v) {
		then := f.writers[0]
		f.writers = f.writers[1:]
		then()
	}
	for len(f.slots) > 0 && f.flying < v.p.WritesMax {
		then := f.slots[0]
		f.slots = f.slots[1:]
		then()
	}
}

// note queues a file that has become dirty.
func (f *flusher) note(v *Volume, n *Inode) {
	if !n.queued && n != f.file {
		n.queued, n.since = true, v.m.now
		f.queue = append(f.queue, n)
	}
	f.kick(v)
	f.tick(v)
}

// tick looks from time to time for files that have been dirty for too long.
func (f *flusher) tick(v *Volume) {
	if f.ticking {
		return
	}
	f.ticking = true
	v.m.After(v.p.Interval, func() {
		f.ticking = false
		f.kick(v)
		if len(f.queue) > 0 {
			f.tick(v)
		}
	})
}

func (f *flusher) kick(v *Volume) {
	if f.stepped || f.file == nil && !f.needed(v) {
		return
	}
	f.stepped = true
	v.m.After(0, func() {
		f.stepped = false
		f.step(v)
	})
}

// needed: too much is dirty, or something has been for too long.
func (f *flusher) needed(v *Volume) bool {
	if len(f.queue) == 0 {
		return false
	}
	return v.cache.dirty*pageBytes > v.p.BackgroundBytes || f.queue[0].since+v.p.Expire <= v.m.now
}

// step submits as much as may be under way.
func (f *flusher) step(v *Volume) {
	for f.flying < v.p.WritesMax {
		if f.file == nil {
			if !f.needed(v) {
				return
			}
			f.file, f.queue = f.queue[0], f.queue[1:]
			f.file.queued = false
			f.left = f.turn(v)
		}
		n := f.file
		run, ok := n.dirty.from(n.cursor, 1<<50)
		if !ok || f.left <= 0 {
			if !ok {
				n.cursor = 0
			}
			f.file = nil
			if len(n.dirty) > 0 {
				n.queued = true
				f.queue = append(f.queue, n)
			}
			continue
		}
		run.len = min(run.len, f.left, v.p.RequestMax/pageBytes)
		n.cursor = run.end()
		f.left -= run.len
		_, more := n.dirty.from(run.end(), run.end()+1)
		v.writePages(n, run, more && f.left > 0)
	}
}

// turn is how many pages of one file are written before the next one's turn.
func (f *flusher) turn(v *Volume) int64 {
	if v.p.WritebackBytes > 0 {
		return max(1, v.p.WritebackBytes/pageBytes)
	}
	const least = 4 << 20
	n := min(int64(f.rate/2), v.p.DirtyBytes/8)
	return (n + least) / least * least / pageBytes
}

// writePages sends a run on its way, in as many requests as it has places.
func (v *Volume) writePages(f *Inode, r span, more bool) {
	v.cache.dirty -= f.dirty.remove(r)
	v.blocks(f, r, false, func(b *block, mask uint16) {
		b.dirty &^= mask
		b.writing |= mask
	})
	v.cache.writing += r.len
	if err := v.allocate(f, r.bytes()); err != nil {
		v.written(f, &writing{pages: r}) // as the kernel does: the data is lost
		return
	}
	f.extents.pieces(r.bytes(), func(part span, dev int64) {
		w := &writing{pages: span{part.pos / pageBytes, part.len / pageBytes}}
		f.flying = append(f.flying, w)
		v.flush.flying++
		v.dev.Submit(&Request{Kind: Write, Pos: dev, Len: part.len, More: more || part.end() < r.bytes().end(), Done: func() {
			v.flush.flying--
			f.flying = slices.DeleteFunc(f.flying, func(a *writing) bool { return a == w })
			v.written(f, w)
		}})
	})
}

func (v *Volume) written(f *Inode, w *writing) {
	v.cache.writing -= w.pages.len
	v.blocks(f, w.pages, false, func(b *block, mask uint16) {
		b.writing &^= mask
		if b.resident|b.dirty|b.writing == 0 {
			v.forgetBlock(b)
		}
	})
	v.flush.measure(v, w.pages.len*pageBytes)
	for _, done := range w.waiters {
		done()
	}
	v.flush.release(v)
	v.flush.kick(v)
}

// measure estimates the device's rate, over spans of a fifth of a second.
func (f *flusher) measure(v *Volume, bytes int64) {
	const span = 200 * time.Millisecond
	f.rateBytes += bytes
	if since := v.m.now - f.rateSince; since >= span {
		if since < 10*span {
			f.rate += (float64(f.rateBytes)/since.Seconds() - f.rate) / 8
		}
		f.rateSince, f.rateBytes = v.m.now, 0
	}
}

// writeRange sends the dirty pages of a run on their way.
func (v *Volume) writeRange(f *Inode, r span) {
	for p := r.pos; ; {
		run, ok := f.dirty.from(p, r.end())
		if !ok {
			return
		}
		run.len = min(run.len, v.p.RequestMax/pageBytes)
		p = run.end()
		_, more := f.dirty.from(p, min(r.end(), p+1))
		v.writePages(f, run, more)
	}
}

// WriteBehind starts writeback of a range (sync_file_range): it waits only while too many requests are under way.
func (v *Volume) WriteBehind(f *Inode, pos, n int64, done func()) {
	v.m.After(v.p.CallCost, func() {
		v.writeRange(f, pagesOf(pos, n))
		if v.flush.flying < v.p.WritesMax {
			done()
			return
		}
		v.flush.slots = append(v.flush.slots, done)
	})
}

// Sync writes what is dirty of a file, waits for all that is on its way, and commits the journal when the file has
// grown or got blocks.
func (v *Volume) Sync(f *Inode, done func()) {
	v.m.After(v.p.CallCost, func() {
		if f.gone {
			done()
			return
		}
		v.writeRange(f, span{0, 1 << 50})
		j := joined(func() {
			if f.changed {
				v.log.commit(v, done)
				return
			}
			v.dev.Submit(&Request{Kind: Flush, Done: done})
		})
		for _, w := range f.flying {
			j.left++
			w.waiters = append(w.waiters, j.close)
		}
		j.close()
	})
}

// SyncDir commits the journal, if there is anything in it.
func (v *Volume) SyncDir(done func()) {
	v.m.After(v.p.CallCost, func() { v.log.commit(v, done) })
}

// TouchDir notes a change of a directory: a new entry, another name, one less.
func (v *Volume) TouchDir() { v.log.touchAt(v, groupBytes+pageBytes) }
