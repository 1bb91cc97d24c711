package lane

import (
	"slices"
	"time"
)

// file is what the lane knows of one file.
type file struct {
	id      FileID
	streams []*stream
	held    intervals // read by runs and not dropped
}

// stream is one reader's way through a file: it is at next, and was read ahead to have.
type stream struct {
	file       *file
	next, have int64
	limit      int64 // no run at or above it
	runBytes   int64 // of the next run
	asks       []request
	taken      bool // the reader has taken something since the last run began
	flying     bool // a run of it is under way
	queued     bool // in a queue
	gone       bool
	used       time.Duration
}

type request struct {
	id       AskID
	pos, end int64
}

func (l *Lane) file(id FileID) *file {
	f := l.files[id]
	if f == nil {
		f = &file{id: id}
		l.files[id] = f
	}
	return f
}

// tidy drops what belongs to no stream, and a file of which nothing is left.
func (l *Lane) tidy(f *file) {
	if len(f.streams) > 0 {
		return
	}
	l.dropBehind(f, pressed)
	delete(l.files, f.id)
	l.out.Gone = append(l.out.Gone, f.id)
}

// find is the stream that a reader at pos belongs to: the nearest of those that are a little behind it, or have
// read ahead beyond it.
func (f *file) find(pos, behind, gap int64) (best *stream) {
	away := func(s *stream) int64 { return max(s.next-pos, pos-s.next) }
	for _, s := range f.streams {
		if pos >= s.next-behind && pos <= s.have+gap && (best == nil || away(s) < away(best)) {
			best = s
		}
	}
	return best
}

func (l *Lane) newStream(now time.Duration, f *file, pos int64) *stream {
	if l.streams >= l.p.StreamsMax {
		if s := l.idlest(nil); s != nil {
			l.forget(s)
			if s.file != f {
				l.tidy(s.file)
			}
		}
	}
	s := &stream{file: f, next: pos, have: pos, limit: pos, runBytes: l.p.FirstBytes, used: now}
	f.streams = append(f.streams, s)
	l.streams++
	if l.expireAt == 0 {
		l.expireAt = now + l.p.IdleAfter
	}
	return s
}

// idlest is the stream that was used longest ago, of those that nobody waits for.
func (l *Lane) idlest(but *stream) (idle *stream) {
	for _, f := range l.sorted() {
		for _, s := range f.streams {
			if s != but && len(s.asks) == 0 && !s.flying && (idle == nil || s.used < idle.used) {
				idle = s
			}
		}
	}
	return idle
}

// forget ends a stream. Those who wait for it may read by themselves.
func (l *Lane) forget(s *stream) {
	for _, r := range s.asks {
		l.out.Wake = append(l.out.Wake, r.id)
	}
	s.asks, s.gone = nil, true
	s.file.streams = slices.DeleteFunc(s.file.streams, func(o *stream) bool { return o == s })
	l.streams--
	l.demand.remove(s)
	l.ahead.remove(s)
}

// wake lets those go on whose bytes are there; with failed those, too, who wait for what a run did not bring.
func (s *stream) wake(l *Lane, from int64, failed bool) {
	s.asks = slices.DeleteFunc(s.asks, func(r request) bool {
		if !s.file.held.covers(r.pos, r.end) && !(failed && r.end > from) {
			return false
		}
		l.out.Wake = append(l.out.Wake, r.id)
		return true
	})
}

// want queues the stream for its next run, if there is anything to read for it.
func (l *Lane) want(s *stream) {
	if s.flying || s.gone {
		return
	}
	s.have, _ = s.file.held.gap(s.have) // what others have read there
	switch {
	case len(s.asks) > 0:
		l.ahead.remove(s)
		l.demand.push(s)
	// Reading ahead begins with the second run: a reader that has come once may want no more.
	case s.taken && s.runBytes > l.p.FirstBytes && s.have < s.limit && s.have-s.next <= l.runBytes(s)/2:
		l.ahead.push(s)
	}
}

// keep is what stays around each stream beside what was read ahead for it: bytes behind it, that it may go back to, and
// bytes ahead of it, that other streams have read. Pieces of less than least bytes are not dropped, but wait for more.
type keep struct{ behind, ahead, least int64 }

// pressed is what stays when memory is short.
var pressed = keep{}

// dropBehind drops what no stream of the file needs.
func (l *Lane) dropBehind(f *file, k keep) (dropped int64) {
	if len(f.held) == 0 {
		return 0
	}
	var needed intervals
	for _, s := range f.streams {
		from := s.next
		for _, r := range s.asks {
			from = min(from, r.pos)
		}
		needed.add(max(0, from-k.behind), max(s.have, s.next+k.ahead))
	}
	for _, x := range f.held.without(needed) {
		if x.to-x.from < k.least {
			continue
		}
		f.held.remove(x.from, x.to)
		dropped += x.to - x.from
		l.out.Drops = append(l.out.Drops, Drop{File: f.id, Pos: x.from, N: x.to - x.from})
	}
	l.heldBytes -= dropped
	l.stats.DroppedBytes += dropped
	return dropped
}

// queue is streams that take turns.
type queue struct{ list []*stream }

func (q *queue) len() int { return len(q.list) }

func (q *queue) push(s *stream) {
	if !s.queued {
		s.queued = true
		q.list = append(q.list, s)
	}
}

func (q *queue) pop() *stream {
	s := q.list[0]
	q.list = slices.Delete(q.list, 0, 1)
	s.queued = false
	return s
}

func (q *queue) remove(s *stream) {
	if i := slices.Index(q.list, s); i >= 0 {
		q.list = slices.Delete(q.list, i, i+1)
		s.queued = false
	}
}
