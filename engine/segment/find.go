package segment

import (
	"errors"

	"platter/io/disk"
)

// place is one batch in the file, and what stands before it. sizeBytes 0: there is no such batch,
// pos is the end.
type place struct {
	pos       int64
	before    int64 // the last offset before it
	sizeBytes int64
	last      int64 // its last offset
}

// Span is a run of whole batches: bytes [Pos, Pos+Len), and the offset that follows them.
type Span struct {
	Pos, Len   int64
	NextOffset int64
}

// Span finds the batches from the one that contains offset (or is the first behind it), all of whose
// offsets lie below limit, within maxBytes; atLeastOne gives the first batch whatever its size. An empty
// Span has Len 0; its NextOffset is End when no batch at or behind offset is here. f is the .log file.
// *CorruptError: the batch at offset is known to be bad.
func (s *Segment) Span(f disk.File, offset, limit, maxBytes int64, atLeastOne bool) (Span, error) {
	sp, err := s.span(f, offset, limit, maxBytes, atLeastOne)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Path != "" {
		return sp, err
	}
	// Either an index misled us, or the log is rotten here. See which, once, and try again.
	if herr := s.heal(f, corrupt); herr != nil {
		return Span{}, herr
	}
	sp, err = s.span(f, offset, limit, maxBytes, atLeastOne)
	if errors.As(err, &corrupt) {
		corrupt.Path = s.path
	}
	return sp, err
}

func (s *Segment) span(f disk.File, offset, limit, maxBytes int64, atLeastOne bool) (Span, error) {
	first, err := s.locate(f, offset)
	if err != nil {
		return Span{}, err
	}
	if first.sizeBytes == 0 {
		return Span{Pos: first.pos, NextOffset: s.end.Load()}, nil
	}
	empty := Span{Pos: first.pos, NextOffset: offset}
	if first.last >= limit {
		return empty, nil
	}
	stop, err := s.stop(f, limit)
	if err != nil {
		return Span{}, err
	}
	if stop.end-first.pos > maxBytes {
		if stop, err = s.floor(f, first.pos+maxBytes); err != nil {
			return Span{}, err
		}
		if stop.end <= first.pos {
			if !atLeastOne {
				return empty, nil
			}
			stop = boundary{last: first.last, end: first.pos + first.sizeBytes}
		}
	}
	for _, b := range s.Bads() {
		if b.End <= first.pos || b.Pos >= stop.end {
			continue
		}
		if b.Pos <= first.pos {
			return Span{}, &CorruptError{Path: s.path, Pos: b.Pos, Cause: b.Cause}
		}
		stop = boundary{last: b.Offset - 1, end: b.Pos}
		break
	}
	return Span{Pos: first.pos, Len: stop.end - first.pos, NextOffset: stop.last + 1}, nil
}

// stop is the boundary behind the last batch that lies wholly below limit.
func (s *Segment) stop(f disk.File, limit int64) (boundary, error) {
	size, end := s.published()
	if limit >= end {
		return boundary{last: end - 1, end: size}, nil
	}
	at, err := s.locate(f, limit)
	return boundary{last: at.before, end: at.pos}, err
}

// locate finds the first batch whose last offset is at or above offset.
func (s *Segment) locate(f disk.File, offset int64) (place, error) {
	below := func(b boundary) bool { return b.last < offset }
	if p, ok := s.inTail(below); ok {
		return p, nil
	}
	// From an entry below, so that what stands before the batch is read, not guessed: there may be a gap.
	guess := float64(offset-s.Base) / float64(max(1, s.end.Load()-s.Base))
	from, err := s.floorEntry(guess, func(e OffsetEntry) bool { return e.Offset < offset })
	if err != nil {
		return place{}, err
	}
	return s.walk(f, from, below)
}

// floor is the last boundary at or below pos.
func (s *Segment) floor(f disk.File, pos int64) (boundary, error) {
	below := func(b boundary) bool { return b.end <= pos }
	p, ok := s.inTail(below)
	if !ok {
		guess := float64(pos) / float64(max(1, s.size.Load()))
		from, err := s.floorEntry(guess, func(e OffsetEntry) bool { return e.Pos <= pos })
		if err != nil {
			return boundary{}, err
		}
		if p, err = s.walk(f, from, below); err != nil {
			return boundary{}, err
		}
	}
	return boundary{last: p.before, end: p.pos}, nil
}

// inTail finds the batch behind the newest boundary for which below holds, among those remembered.
func (s *Segment) inTail(below func(boundary) bool) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail == nil {
		return place{}, false
	}
	i, ok := s.tail.below(below)
	if !ok {
		return place{}, false
	}
	b := s.tail.at(i)
	p := place{pos: b.end, before: b.last}
	if i+1 < len(s.tail.ring) {
		next := s.tail.at(i + 1)
		p.sizeBytes, p.last = next.end-b.end, next.last
	}
	return p, true
}

// walk reads batch headers from an index entry on, up to the first batch whose end is a boundary for
// which below does not hold. It steps over bad ranges that are known, unless the batch may be in one.
func (s *Segment) walk(f disk.File, from OffsetEntry, below func(boundary) bool) (place, error) {
	size, end := s.published()
	at := place{pos: from.Pos, before: s.Base - 1}
	check := from.Pos > 0
	for at.pos < size {
		var sc Scanner
		sc.init(f, at.pos, size, ScanOptions{LimitOffset: end, near: true})
		for sc.Next() {
			b := sc.Batch()
			if check && b.LastOffset() != from.Offset {
				sc.Close()
				return place{}, &CorruptError{Pos: from.Pos, Cause: ErrIndex}
			}
			if check {
				at.before, check = b.BaseOffset()-1, false
			}
			if !below(boundary{last: b.LastOffset(), end: sc.End()}) {
				at.pos, at.sizeBytes, at.last = sc.Pos(), sc.SizeBytes(), b.LastOffset()
				sc.Close()
				return at, nil
			}
			at.pos, at.before = sc.End(), b.LastOffset()
		}
		err := sc.Err()
		sc.Close()
		if err == nil {
			break
		}
		bad, known := s.badAt(at.pos)
		if !known || check {
			return place{}, err
		}
		if !below(boundary{last: bad.NextOffset - 1, end: bad.End}) {
			at.sizeBytes, at.last = bad.End-bad.Pos, bad.NextOffset-1
			return at, nil
		}
		at.pos, at.before = bad.End, bad.NextOffset-1
	}
	return at, nil
}

func (s *Segment) badAt(pos int64) (Bad, bool) {
	for _, b := range s.Bads() {
		if b.Pos == pos {
			return b, true
		}
	}
	return Bad{}, false
}

// floorEntry is the last offset entry for which keep holds; the segment's start when there is none. guess
// is where in the index it may be, from 0 to 1.
func (s *Segment) floorEntry(guess float64, keep func(OffsetEntry) bool) (OffsetEntry, error) {
	match := func(p []byte) bool { return keep(decodeOffsetEntry(p, s.Base)) }
	s.mu.Lock()
	if err := s.load(); err != nil {
		s.mu.Unlock()
		return OffsetEntry{}, err
	}
	n := s.offsets.disk
	if p := s.offsets.lastPending(match); p != nil {
		e := decodeOffsetEntry(p, s.Base)
		s.mu.Unlock()
		return e, nil
	}
	s.mu.Unlock()
	return s.diskOffsetEntry(n, guess, match)
}

func (s *Segment) diskOffsetEntry(n int64, guess float64, match func(p []byte) bool) (e OffsetEntry, err error) {
	start := OffsetEntry{Offset: s.Base, Pos: 0}
	if n == 0 {
		return start, nil
	}
	err = withFile(s.env, s.pathOf(IndexSuffix), disk.ReadWrite, func(f disk.File) error {
		p, _, err := lastBelow(f, n, offsetEntryBytes, guess, match)
		if p == nil {
			e = start
			return err
		}
		e = decodeOffsetEntry(p, s.Base)
		if e.Pos <= 0 || e.Pos >= s.size.Load() || e.Offset < s.Base {
			return &CorruptError{Pos: e.Pos, Cause: ErrIndex}
		}
		return err
	})
	if disk.IsNotExist(err) {
		err = &CorruptError{Cause: ErrIndex}
	}
	return e, err
}
