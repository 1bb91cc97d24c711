package hddsim

import "time"

// parity is RAID levels 5 and 6 as Linux md does them (Documentation/md, drivers/md/raid5.c).
//
// A row is one chunk of every member: n data chunks, and one or two of parity which move on by a member with each row
// (left-symmetric). A write of all n pages of a stripe goes out with its parity; any other has to read first:
// what it replaces and the old parity (read-modify-write) or the pages that it leaves as they are
// (reconstruct-write), whichever is less. A row that a sequential writer has only begun waits for the rest.
type parity struct {
	set
	m       *Machine
	p       RAIDParams
	data    int // chunks of data in a row
	parity  int
	pages   int // of a chunk
	rows    map[int64]*row
	waiting []*row // that are ready, until there is room in the stripe cache
	heads   int    // in use by rows in work
	recent  []*row // remembered ones, newest last
	holding int    // stripes that they remember
}

const (
	pageBytes = 4096
	// holdMax is how long a row waits for the rest of a run that its writer has announced.
	holdMax = 30 * time.Millisecond
)

// State of a page of a row.
const (
	pageNew    = 1 << iota // to be written
	pageCached             // what is on the medium is known
)

// row is one in work or remembered. Pages are indexed by data chunk, then page; parity counts as one chunk more.
type row struct {
	n      int64
	state  []byte
	next   []byte // of writes that came while it was in work
	done   []func()
	after  []func() // for next
	fua    bool
	busy   bool
	held   bool   // an announced run goes on here
	ready  func() // asks whether it can begin; nil when nothing is to be written
	listed bool   // in waiting
	heads  int
}

func newParity(m *Machine, p RAIDParams, members []Device) *parity {
	s := &parity{set: newSet(members), m: m, p: p, parity: 1, rows: map[int64]*row{}}
	if p.Level == 6 {
		s.parity = 2
	}
	s.data = len(members) - s.parity
	s.pages = int(p.ChunkBytes / pageBytes)
	return s
}

// SizeBytes is the members without their parity.
func (s *parity) SizeBytes() int64 { return s.each / s.p.ChunkBytes * s.p.ChunkBytes * int64(s.data) }

// member of a row's data chunk; the parity chunks are numbered data and data+1.
func (s *parity) member(row int64, chunk int) int {
	n := len(s.members)
	first := n - 1 - int(row%int64(n)) // parity
	if chunk >= s.data {
		return (first + chunk - s.data) % n
	}
	return (first + s.parity + chunk) % n
}

// Submit reads from the data chunks, and gathers writes in rows.
func (s *parity) Submit(r *Request) {
	if r.Kind == Flush {
		s.all(r)
		return
	}
	j := joined(r.Done)
	rowBytes := s.p.ChunkBytes * int64(s.data)
	for pos := r.Pos; pos < r.end(); {
		chunk, in := pos%rowBytes/s.p.ChunkBytes, pos%s.p.ChunkBytes
		n := min(s.p.ChunkBytes-in, r.end()-pos)
		if r.Kind == Read {
			s.read(j, pos/rowBytes, int(chunk), in, n)
		} else {
			j.left++
			last := pos+n == r.end()
			s.write(pos/rowBytes, int(chunk), in, n, r.FUA, r.More || !last, j.close)
		}
		pos += n
	}
	j.close()
}

// read takes a chunk's part from its member, or from all others where that one is missing.
func (s *parity) read(j *join, row int64, chunk int, in, n int64) {
	m := s.member(row, chunk)
	for i, d := range s.members {
		if i == m && m != s.p.Failed || m == s.p.Failed && i != m {
			part := &Request{Kind: Read, Pos: row*s.p.ChunkBytes + in, Len: n}
			j.add(part)
			d.Submit(part)
		}
	}
}

func (s *parity) row(n int64) *row {
	r := s.rows[n]
	if r == nil {
		r = &row{n: n, state: make([]byte, (s.data+s.parity)*s.pages)}
		s.rows[n] = r
	}
	return r
}

func (s *parity) write(n int64, chunk int, in, length int64, fua, more bool, done func()) {
	r := s.row(n)
	state, list := r.state, &r.done
	if r.busy {
		if r.next == nil {
			r.next = make([]byte, len(r.state))
		}
		state, list = r.next, &r.after
	}
	for i := in / pageBytes; i*pageBytes < in+length; i++ {
		state[chunk*s.pages+int(i)] |= pageNew
	}
	*list = append(*list, done)
	r.fua = r.fua || fua
	r.held = more && (in+length < s.p.ChunkBytes || chunk+1 < s.data)
	switch {
	case r.busy || r.listed:
	case r.ready == nil:
		s.gather(r)
	case !r.held:
		s.m.After(0, r.ready)
	}
}

// gather has a row begin after all that is submitted at this moment, or when the announced rest has not come.
func (s *parity) gather(r *row) {
	limit := s.m.now + holdMax
	r.ready = func() {
		switch {
		case r.busy || r.listed || r.ready == nil:
		case r.held && s.m.now < limit:
			s.m.At(limit, r.ready)
		default:
			r.listed = true
			s.waiting = append(s.waiting, r)
			s.begin()
		}
	}
	s.m.After(0, r.ready)
}

// begin works on rows as long as the stripe cache has room; on one in any case.
func (s *parity) begin() {
	for len(s.waiting) > 0 {
		r := s.waiting[0]
		heads := s.countHeads(r)
		if s.heads > 0 && s.heads+heads > s.p.StripeCache {
			return
		}
		s.waiting = s.waiting[1:]
		s.forget(r)
		r.listed, r.ready, r.busy, r.heads = false, nil, true, heads
		s.heads += heads
		s.fill(r)
	}
}

func (s *parity) countHeads(r *row) (heads int) {
	for i := range s.pages {
		if s.newIn(r, i) > 0 {
			heads++
		}
	}
	return heads
}

// newIn counts the pages of a stripe that are to be written.
func (s *parity) newIn(r *row, page int) (n int) {
	for c := range s.data {
		if r.state[c*s.pages+page]&pageNew != 0 {
			n++
		}
	}
	return n
}

// fill reads what the parity of the row's stripes needs, then writes.
func (s *parity) fill(r *row) {
	need := make([]bool, len(r.state))
	for page := range s.pages {
		if k := s.newIn(r, page); k > 0 && k < s.data {
			s.needs(r, page, need)
		}
	}
	j := joined(func() { s.flushRow(r) })
	s.runs(func(i int) bool { return need[i] }, func(chunk, from, to int) {
		s.read(j, r.n, chunk, int64(from)*pageBytes, int64(to-from)*pageBytes)
	})
	for i, was := range need {
		if was {
			r.state[i] |= pageCached
		}
	}
	j.close()
}

// needs marks what one stripe has to read, in the cheaper of the two ways.
func (s *parity) needs(r *row, page int, need []bool) {
	var modify, reconstruct []int
	for c := range s.data + s.parity {
		i := c*s.pages + page
		switch {
		case r.state[i]&pageCached != 0:
		case c >= s.data || r.state[i]&pageNew != 0:
			modify = append(modify, i)
		default:
			reconstruct = append(reconstruct, i)
		}
	}
	cheaper := reconstruct
	if len(modify) < len(reconstruct) {
		cheaper = modify
	}
	for _, i := range cheaper {
		need[i] = true
	}
}

// runs calls f for each run of pages of a chunk that has to do with i.
func (s *parity) runs(has func(i int) bool, f func(chunk, from, to int)) {
	for c := range s.data + s.parity {
		for from := 0; from < s.pages; from++ {
			to := from
			for to < s.pages && has(c*s.pages+to) {
				to++
			}
			if to > from {
				f(c, from, to)
				from = to
			}
		}
	}
}

// flushRow writes the new pages and their parity.
func (s *parity) flushRow(r *row) {
	for page := range s.pages {
		if s.newIn(r, page) > 0 {
			for c := s.data; c < s.data+s.parity; c++ {
				r.state[c*s.pages+page] |= pageNew
			}
		}
	}
	j := joined(func() { s.end(r) })
	s.runs(func(i int) bool { return r.state[i]&pageNew != 0 }, func(chunk, from, to int) {
		m := s.member(r.n, chunk)
		if m == s.p.Failed {
			return
		}
		part := &Request{Kind: Write, Pos: r.n*s.p.ChunkBytes + int64(from)*pageBytes, Len: int64(to-from) * pageBytes, FUA: r.fua}
		j.add(part)
		s.members[m].Submit(part)
	})
	j.close()
}

// end answers the writers, and turns to what has come meanwhile.
func (s *parity) end(r *row) {
	for i, st := range r.state {
		if st&pageNew != 0 {
			r.state[i] = pageCached
		}
	}
	done := r.done
	s.heads -= r.heads
	r.busy, r.fua, r.done = false, false, nil
	if r.next != nil {
		for i, st := range r.next {
			r.state[i] |= st
		}
		r.done, r.next, r.after = r.after, nil, nil
		s.gather(r)
	} else {
		s.remember(r)
	}
	s.begin()
	for _, f := range done {
		f()
	}
}

// remember keeps what is known of a row, and drops the oldest beyond the stripe cache.
func (s *parity) remember(r *row) {
	s.recent = append(s.recent, r)
	s.holding += r.heads
	for len(s.recent) > 0 && s.holding+s.heads > s.p.StripeCache {
		old := s.recent[0]
		s.recent = s.recent[1:]
		s.holding -= old.heads
		if !old.busy && old.ready == nil {
			delete(s.rows, old.n)
		}
	}
}

// forget takes a row that is worked on again from the remembered ones.
func (s *parity) forget(r *row) {
	for i, old := range s.recent {
		if old == r {
			s.recent = append(s.recent[:i], s.recent[i+1:]...)
			s.holding -= r.heads
			return
		}
	}
}
