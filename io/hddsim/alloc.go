package hddsim

import (
	"slices"

	"platter/io/invariant"
)

// span is a run of bytes, of a file or of a device, in whole pages.
type span struct{ pos, len int64 }

func (s span) end() int64 { return s.pos + s.len }

// space is the free room of a device.
type space struct {
	free   []span // sorted, never adjoining
	left   int64
	cursor int64 // where the last search ended
}

func newSpace(size int64) *space { return &space{free: []span{{0, size}}, left: size} }

// reserve takes a range out for good; it has to be free.
func (s *space) reserve(r span) {
	i := s.find(r.pos)
	invariant.Check(i < len(s.free) && s.free[i].pos <= r.pos && s.free[i].end() >= r.end(), "range %+v is not free", r)
	s.cut(i, r)
}

// find is the first free span that ends beyond pos.
func (s *space) find(pos int64) int {
	i, _ := slices.BinarySearchFunc(s.free, pos, func(f span, pos int64) int { return compare(f.end()-1, pos) })
	return i
}

// small is what is passed over in the first search for room.
const small = 1 << 20

// take gives up to n bytes in one piece: at goal where that is free, else where the last search ended, past
// pieces that are too small. ok is false when nothing is free.
func (s *space) take(goal, n int64) (span, bool) {
	if i := s.find(goal); goal >= 0 && i < len(s.free) && s.free[i].pos <= goal {
		return s.cut(i, span{goal, min(n, s.free[i].end()-goal)}), true
	}
	if len(s.free) == 0 {
		return span{}, false
	}
	from := s.find(s.cursor)
	for _, least := range []int64{min(n, small), 1} {
		for k := range len(s.free) + 1 { // the first one twice: behind the cursor, and in the end whole
			f := s.free[(from+k)%len(s.free)]
			if k == 0 && from < len(s.free) && f.pos < s.cursor {
				f = span{s.cursor, f.end() - s.cursor}
			}
			if f.len >= least {
				got := s.cut((from+k)%len(s.free), span{f.pos, min(n, f.len)})
				s.cursor = got.end()
				return got, true
			}
		}
	}
	return span{}, false
}

// cut takes r from the free span i.
func (s *space) cut(i int, r span) span {
	f := s.free[i]
	var rest []span
	if r.pos > f.pos {
		rest = append(rest, span{f.pos, r.pos - f.pos})
	}
	if r.end() < f.end() {
		rest = append(rest, span{r.end(), f.end() - r.end()})
	}
	s.free = slices.Replace(s.free, i, i+1, rest...)
	s.left -= r.len
	return r
}

// give returns a range.
func (s *space) give(r span) {
	i := s.find(r.pos)
	s.left += r.len
	if i > 0 && s.free[i-1].end() == r.pos {
		i--
		r = span{s.free[i].pos, s.free[i].len + r.len}
		s.free = slices.Delete(s.free, i, i+1)
	}
	if i < len(s.free) && s.free[i].pos == r.end() {
		r.len += s.free[i].len
		s.free = slices.Delete(s.free, i, i+1)
	}
	s.free = slices.Insert(s.free, i, r)
}

// extent says where a run of a file is on the device.
type extent struct {
	span       // of the file
	dev  int64 // of its first byte
}

// layout is a file's extents, sorted.
type layout []extent

// find is the first extent that ends beyond pos.
func (l layout) find(pos int64) int {
	i, _ := slices.BinarySearchFunc(l, pos, func(e extent, pos int64) int { return compare(e.end()-1, pos) })
	return i
}

// pieces calls f for each part of a run of the file that lies in one piece, with its place; dev is -1 in a hole.
func (l layout) pieces(r span, f func(part span, dev int64)) {
	for i := l.find(r.pos); r.len > 0; i++ {
		if i == len(l) || l[i].pos >= r.end() {
			f(r, -1)
			return
		}
		e := l[i]
		if e.pos > r.pos {
			f(span{r.pos, e.pos - r.pos}, -1)
			r = span{e.pos, r.end() - e.pos}
		}
		part := span{r.pos, min(r.end(), e.end()) - r.pos}
		f(part, e.dev+r.pos-e.pos)
		r = span{part.end(), r.len - part.len}
	}
}

// put adds an extent where there is a hole, joined to its neighbour when it goes on there.
func (l *layout) put(e extent) {
	i := l.find(e.pos)
	if i > 0 {
		if b := &(*l)[i-1]; b.end() == e.pos && b.dev+b.len == e.dev {
			b.len += e.len
			return
		}
	}
	*l = slices.Insert(*l, i, e)
}

// cutTo drops what is beyond size, and returns the device's ranges of it.
func (l *layout) cutTo(size int64) (freed []span) {
	i := l.find(size)
	if i < len(*l) && (*l)[i].pos < size {
		e := &(*l)[i]
		keep := size - e.pos
		freed = append(freed, span{e.dev + keep, e.len - keep})
		e.len = keep
		i++
	}
	for _, e := range (*l)[i:] {
		freed = append(freed, span{e.dev, e.len})
	}
	*l = (*l)[:i]
	return freed
}

// runs is a set of page numbers as sorted runs that never adjoin.
type runs []span

// add puts a run in, and returns how many pages are new.
func (s *runs) add(r span) (fresh int64) {
	i, _ := slices.BinarySearchFunc(*s, r.pos, func(a span, pos int64) int { return compare(a.end(), pos) })
	j, whole, had := i, r, int64(0)
	for ; j < len(*s) && (*s)[j].pos <= r.end(); j++ {
		o := (*s)[j]
		had += max(0, min(o.end(), r.end())-max(o.pos, r.pos))
		from, to := min(o.pos, whole.pos), max(o.end(), whole.end())
		whole = span{from, to - from}
	}
	*s = slices.Replace(*s, i, j, whole)
	return r.len - had
}

// remove takes a run out, and returns how many pages were in.
func (s *runs) remove(r span) (gone int64) {
	i, _ := slices.BinarySearchFunc(*s, r.pos, func(a span, pos int64) int { return compare(a.end()-1, pos) })
	j := i
	var rest []span
	for ; j < len(*s) && (*s)[j].pos < r.end(); j++ {
		o := (*s)[j]
		gone += min(o.end(), r.end()) - max(o.pos, r.pos)
		if o.pos < r.pos {
			rest = append(rest, span{o.pos, r.pos - o.pos})
		}
		if o.end() > r.end() {
			rest = append(rest, span{r.end(), o.end() - r.end()})
		}
	}
	*s = slices.Replace(*s, i, j, rest...)
	return gone
}

// from is the first part of a run at or beyond page p and below limit; ok is false when there is none.
func (s runs) from(p, limit int64) (span, bool) {
	i, _ := slices.BinarySearchFunc(s, p, func(a span, pos int64) int { return compare(a.end()-1, pos) })
	if i == len(s) || s[i].pos >= limit || p >= limit {
		return span{}, false
	}
	at := max(s[i].pos, p)
	return span{at, min(s[i].end(), limit) - at}, true
}
