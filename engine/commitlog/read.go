package commitlog

import (
	"errors"
	"fmt"

	"platter/engine/segment"
	"platter/engine/spindle"
	"platter/io/disk"
	"platter/io/handles"
)

// rangesMax is how many segments one Read may span.
const rangesMax = 4

// pins is what one Read holds: one allocation for up to rangesMax ranges.
type pins struct {
	refs   [rangesMax]*handles.Ref
	ranges [rangesMax]disk.Range
	n      int
}

// Release unpins the ranges' files.
func (r *Read) Release() {
	if r.pins == nil {
		return
	}
	for _, ref := range r.pins.refs[:r.pins.n] {
		ref.Release()
	}
	r.pins, r.Ranges = nil, nil
}

// Read returns whole batches from the one that contains offset, up to maxBytes, only below limit
// (exclusive offset: high watermark, last stable offset or log end). With atLeastOne the first batch
// comes whatever its size. Offset equal to the log end gives an empty Read; beyond, or below the
// start: ErrOffsetOutOfRange.
func (l *Log) Read(offset int64, maxBytes int64, limit int64, atLeastOne bool) (Read, error) {
	const tries = 4 // a segment may be retired between the look at the view and at the file
	for i := 0; ; i++ {
		r, err := l.read(offset, maxBytes, limit, atLeastOne)
		if !errors.Is(err, segment.ErrGone) || i == tries {
			return r, l.fail(err)
		}
		l.awaitWriter() // until whoever retires segments has finished
	}
}

func (l *Log) awaitWriter() {
	l.mu.Lock()
	defer l.mu.Unlock()
}

func (l *Log) inRange(offset int64) (Ends, error) {
	if err := l.status(); err != nil {
		return Ends{}, err
	}
	e := l.Ends()
	if offset < e.Start || offset > e.Written {
		return e, fmt.Errorf("%w: %d, the log is %d to %d", ErrOffsetOutOfRange, offset, e.Start, e.Written)
	}
	return e, nil
}

func (l *Log) read(offset, maxBytes, limit int64, atLeastOne bool) (Read, error) {
	r := Read{NextOffset: offset}
	e, err := l.inRange(offset)
	if err != nil {
		return r, err
	}
	v := l.view.Load() // after the ends: it reaches at least as far
	if len(v.segs) == 0 || offset < v.segs[0].Base {
		return r, segment.ErrGone
	}
	limit = min(limit, e.Written)
	for i := v.find(offset); i < len(v.segs) && offset < limit; i++ {
		s := v.segs[i]
		if r.pins != nil && (r.SizeBytes >= maxBytes || r.pins.n == rangesMax) {
			break
		}
		more, err := l.readSegment(&r, s, offset, maxBytes-r.SizeBytes, limit, atLeastOne && r.pins == nil)
		if err != nil {
			if r.pins != nil && isCorrupt(err) {
				break // what is before it can be read
			}
			r.Release()
			if isCorrupt(err) {
				err = fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
			return Read{NextOffset: offset}, err
		}
		if r.pins != nil {
			offset = r.NextOffset
		}
		if !more {
			break
		}
	}
	return r, nil
}

// readSegment adds what the segment has to r; more says that the read may go on in the next segment.
func (l *Log) readSegment(r *Read, s *segment.Segment, offset, maxBytes, limit int64, atLeastOne bool) (more bool, err error) {
	ref, err := s.Acquire()
	if err != nil {
		return false, err
	}
	sp, err := s.Span(ref.File(), offset, limit, maxBytes, atLeastOne)
	if err != nil || sp.Len == 0 {
		ref.Release()
		return err == nil && sp.NextOffset > offset, err
	}
	if r.pins == nil {
		r.pins = new(pins)
	}
	p := r.pins
	p.refs[p.n] = ref
	p.ranges[p.n] = disk.Range{File: spindle.ForReaders(ref.File()), Pos: sp.Pos, Len: sp.Len}
	p.n++
	r.Ranges = p.ranges[:p.n]
	r.SizeBytes += sp.Len
	r.NextOffset = sp.NextOffset
	return sp.NextOffset >= s.End(), nil
}

func isCorrupt(err error) bool {
	var corrupt *segment.CorruptError
	return errors.As(err, &corrupt)
}
