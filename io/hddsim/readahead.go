package hddsim

import "slices"

// Reader is where a reader stands in a file, as the kernel keeps it with each open file (struct file_ra_state): its
// readahead window, and the page behind its last read. The zero value has read nothing.
type Reader struct {
	start, size, async int64 // pages: the window, and how much of it was not asked for yet
	prev               int64
}

// ReadOptions of one read.
type ReadOptions struct {
	DontCache bool // what the read brings in does not stay (RWF_DONTCACHE)
	NoCopy    bool // the bytes stay in the kernel (sendfile)
}

// load is a run of pages on its way from the device.
type load struct {
	pages   span
	waiters []func()
}

// reading is one read under way.
type reading struct {
	v     *Volume
	f     *Inode
	h     *Reader
	o     ReadOptions
	pages span
	n     int64 // bytes
	done  func()
}

// Read brings a range into memory and copies it. h is the reader's own; nil reads just what was asked for.
func (v *Volume) Read(f *Inode, h *Reader, pos, n int64, o ReadOptions, done func()) {
	n = max(0, min(n, f.size-pos))
	r := &reading{v: v, f: f, h: h, o: o, pages: pagesOf(pos, n), n: n, done: done}
	v.m.After(v.p.CallCost, func() { r.step(r.pages.pos) })
}

// step goes on from page p, until it has to wait.
func (r *reading) step(p int64) {
	for ; p < r.pages.end() && !r.f.gone; p++ {
		has, l := r.f.has(p), r.f.loadOf(p)
		if (has || l != nil) && r.h != nil && r.h.size > 0 && p == r.h.start+r.h.size-r.h.async {
			r.h.advance(r.most())
			r.load(r.h.start, r.h.size)
		}
		if has {
			continue
		}
		if l == nil {
			r.miss(p)
			if l = r.f.loadOf(p); l == nil {
				continue // a hole
			}
		}
		at := p
		l.waiters = append(l.waiters, func() { r.step(at) })
		return
	}
	r.end()
}

func (r *reading) end() {
	if r.h != nil {
		r.h.prev = r.pages.end()
	}
	r.v.use(r.f, r.pages)
	for p := r.pages.pos; r.o.DontCache; {
		s, ok := r.f.behind.from(p, r.pages.end())
		if !ok {
			break
		}
		r.v.forgetPages(r.f, s)
		p = s.end()
	}
	r.f.behind.remove(r.pages)
	if r.o.NoCopy {
		r.v.m.After(r.v.p.CallCost, r.done)
		return
	}
	r.v.m.After(over(r.n, r.v.p.CopyBytesPerSec), r.done)
}

// load brings pages in, for this read and for those that follow it.
func (r *reading) load(p, n int64) { r.v.load(r.f, span{p, n}, r.o.DontCache) }

// most is the largest window, in pages. A read that is longer is sent as it is, up to a request.
func (r *reading) most() int64 {
	most := r.v.p.ReadaheadBytes / pageBytes
	if r.pages.len > most {
		most = max(most, min(r.pages.len, r.v.p.RequestMax/pageBytes))
	}
	return max(most, 1)
}

// miss starts reading at page p: a window ahead of a sequential reader, else what was asked for.
func (r *reading) miss(p int64) {
	want, most := r.pages.end()-p, r.most()
	h := r.h
	switch {
	case h == nil || p != 0 && p != h.prev && p != h.prev-1 && p != h.start+h.size && p == r.pages.pos:
		r.load(p, min(want, most))
		if h != nil {
			h.size, h.async = 0, 0
		}
		return
	case h.size > 0 && p == h.start+h.size:
		h.advance(most)
	default:
		h.start, h.size = p, firstWindow(want, most)
		h.async = h.size
		if h.size > want {
			h.async = h.size - want
		}
	}
	r.load(h.start, h.size)
}

// firstWindow and advance are get_init_ra_size and get_next_ra_size of mm/readahead.c.
func firstWindow(want, most int64) int64 {
	n := int64(1)
	for n < want {
		n *= 2
	}
	switch {
	case n <= most/32:
		return n * 4
	case n <= most/4:
		return n * 2
	}
	return most
}

func (h *Reader) advance(most int64) {
	h.start += h.size
	switch {
	case h.size < most/16:
		h.size *= 4
	case h.size <= most/2:
		h.size *= 2
	default:
		h.size = most
	}
	h.async = h.size
}

// loadOf is the load that brings a page, nil when none does.
func (f *Inode) loadOf(page int64) *load {
	for _, l := range f.loading {
		if l.pages.pos <= page && page < l.pages.end() {
			return l
		}
	}
	return nil
}

// load starts reading those pages of a run that are neither in memory nor on their way; once: they go when they
// have been read.
func (v *Volume) load(f *Inode, r span, once bool) {
	last := pageUp(f.size) / pageBytes
	for p := r.pos; p < min(r.end(), last); {
		n := int64(0)
		for p+n < min(r.end(), last) && n < v.p.RequestMax/pageBytes && !f.has(p+n) && f.loadOf(p+n) == nil {
			n++
		}
		if n > 0 {
			v.submitLoad(f, span{p, n})
			if once {
				f.behind.add(span{p, n})
			}
		}
		p += max(n, 1)
	}
}

func (v *Volume) submitLoad(f *Inode, r span) {
	f.extents.pieces(r.bytes(), func(part span, dev int64) {
		pages := span{part.pos / pageBytes, part.len / pageBytes}
		if dev < 0 {
			v.admitPages(f, pages)
			return
		}
		l := &load{pages: pages}
		f.loading = append(f.loading, l)
		v.dev.Submit(&Request{Kind: Read, Pos: dev, Len: part.len, Done: func() {
			f.loading = slices.DeleteFunc(f.loading, func(a *load) bool { return a == l })
			if !f.gone {
				v.admitPages(f, pages)
			}
			for _, next := range l.waiters {
				next()
			}
		}})
	})
}

// fetch brings pages in for a part of another operation.
func (v *Volume) fetch(f *Inode, r span, j *join) {
	v.load(f, r, false)
	for _, l := range f.loading {
		if l.pages.pos < r.end() && r.pos < l.pages.end() {
			j.left++
			l.waiters = append(l.waiters, j.close)
		}
	}
}

// WillNeed starts reading a range, and does not wait.
func (v *Volume) WillNeed(f *Inode, pos, n int64, done func()) {
	v.m.After(v.p.CallCost, func() {
		v.load(f, pagesOf(pos, n), false)
		done()
	})
}
