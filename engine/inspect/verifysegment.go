package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"platter/engine/batch"
	"platter/engine/segment"
	"platter/io/disk"
)

// segmentCheck is one pass over a .log file, with its indexes beside it.
type segmentCheck struct {
	*logCheck
	path    string
	files   segment.Files
	limit   int64 // the next segment's base offset
	offsets *cursor[segment.OffsetEntry]
	times   *cursor[segment.TimeEntry]

	maxTimestamp int64 // of the batches so far
	holes, lost  int64
	sound        bool // no batch was bad so far: then the indexes must fit
}

// segment checks one segment; batches must lie below limit.
func (c *logCheck) segment(ctx context.Context, files segment.Files, limit int64) error {
	c.sum.Segments++
	s := &segmentCheck{
		logCheck: c, path: c.path(segment.LogName(files.Base)), files: files, limit: limit,
		maxTimestamp: -1, sound: true,
	}
	f, size, err := open(c.FS, s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	closeIndexes, err := s.openIndexes()
	if err != nil {
		return err
	}
	defer closeIndexes()
	if files.Base > c.next {
		c.report(Note, s.path, -1, "offsets %d to %d are missing before it", c.next, files.Base-1)
		c.next = files.Base
	}
	done := int64(0)
	err = scanLog(f, size, false, func(e *entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.Progress != nil {
			c.Progress(e.size)
		}
		done = e.pos + e.size
		c.sum.Bytes += e.size
		return s.entry(e)
	})
	var corrupt *segment.CorruptError
	switch {
	case errors.As(err, &corrupt) && limit == math.MaxInt64 && !c.clean && zeroTail(f, corrupt.Pos, size):
		c.report(Note, s.path, corrupt.Pos, "%d zeros to the end of the file: the next start cuts them", size-corrupt.Pos)
	case errors.As(err, &corrupt):
		s.sound = false
		c.report(Bad, s.path, corrupt.Pos, "%s; the %d bytes from here on are no batches", problem(err), size-corrupt.Pos)
	case err != nil:
		return err
	}
	if c.Progress != nil {
		c.Progress(size - done)
	}
	if s.holes > 0 {
		c.report(Note, s.path, -1, "%d offsets are missing in %d places, as compaction leaves them", s.lost, s.holes)
	}
	return s.finishIndexes(done)
}

// entry checks one batch.
func (s *segmentCheck) entry(e *entry) error {
	s.sum.Batches++
	if err := s.records(e); err != nil {
		s.sound = false
		s.report(Bad, s.path, e.pos, "batch at offsets %d to %d: %s", e.first(), e.last(), problem(err))
	}
	switch {
	case e.first() < s.files.Base || e.last() >= s.limit:
		s.sound = false
		s.report(Bad, s.path, e.pos, "offsets %d to %d do not belong into this segment", e.first(), e.last())
	case e.first() > s.next && !e.legacy(): // an old wrapper's first offset is inside
		s.holes++
		s.lost += e.first() - s.next
	}
	s.next = max(s.next, e.last()+1)
	s.epochOf(s.path, e)
	if err := s.offsetEntry(e); err != nil {
		return err
	}
	if err := s.timeEntry(e); err != nil {
		return err
	}
	s.maxTimestamp = max(s.maxTimestamp, e.maxTimestamp())
	return nil
}

// records checks CRC and what is inside.
func (s *segmentCheck) records(e *entry) error {
	if err := e.checkCRC(); err != nil {
		return err
	}
	if e.legacy() {
		if s.Shallow {
			s.sum.Records++
			return nil
		}
		return batch.WalkLegacy(e.old, inflateBytesMax, func(batch.LegacyEntry) error {
			s.sum.Records++
			return nil
		})
	}
	if s.Shallow {
		s.sum.Records += int64(max(0, e.b.Count()))
		return nil
	}
	last, newest := int32(-1), int64(-1)
	err := batch.Walk(e.b, inflateBytesMax, func(r *batch.Record) error {
		s.sum.Records++
		if r.OffsetDelta <= last || r.OffsetDelta > e.b.LastOffsetDelta() {
			return fmt.Errorf("record %d has offset delta %d", s.sum.Records, r.OffsetDelta)
		}
		last, newest = r.OffsetDelta, max(newest, e.b.TimestampOf(r))
		return nil
	})
	// Compaction keeps the max timestamp of records that it removed.
	if err == nil && newest > e.b.MaxTimestamp() {
		err = fmt.Errorf("a record's timestamp, %d, is above the batch's max timestamp, %d", newest, e.b.MaxTimestamp())
	}
	return err
}

// cursor reads an index's entries one by one, beside the scan of the log.
type cursor[T any] struct {
	path string
	next func() (T, error, bool)
	stop func()
	head T
	ok   bool
}

func newCursor[T any](path string, read func(yield func(T) error) error) (*cursor[T], error) {
	seq := iter.Seq2[T, error](func(yield func(T, error) bool) {
		err := read(func(e T) error {
			if !yield(e, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			var zero T
			yield(zero, err)
		}
	})
	c := &cursor[T]{path: path}
	c.next, c.stop = iter.Pull2(seq)
	return c, c.advance()
}

func (c *cursor[T]) advance() error {
	var err error
	c.head, err, c.ok = c.next()
	if err != nil {
		c.ok = false
	}
	return err
}

// openIndexes starts reading the segment's indexes. One that is missing is rebuilt at the next start.
func (s *segmentCheck) openIndexes() (closeAll func(), err error) {
	var files []disk.File
	closeAll = func() {
		if s.offsets != nil {
			s.offsets.stop()
		}
		if s.times != nil {
			s.times.stop()
		}
		for _, f := range files {
			f.Close()
		}
	}
	open1 := func(name string, start func(f disk.File, path string, size int64) error) error {
		path := s.logCheck.path(name)
		f, size, err := open(s.FS, path)
		if disk.IsNotExist(err) {
			if s.files.LogBytes > 0 {
				s.report(Note, path, -1, "is missing: the next start rebuilds it")
			}
			return nil
		}
		if err != nil {
			return err
		}
		files = append(files, f)
		return s.indexError(path, start(f, path, size))
	}
	base := s.files.Base
	err = open1(segment.IndexName(base), func(f disk.File, path string, size int64) (err error) {
		s.offsets, err = newCursor(path, func(yield func(segment.OffsetEntry) error) error {
			return segment.ReadOffsetIndex(f, size, base, func(_ int64, e segment.OffsetEntry) error { return yield(e) })
		})
		return err
	})
	if err == nil {
		err = open1(segment.TimeIndexName(base), func(f disk.File, path string, size int64) (err error) {
			s.times, err = newCursor(path, func(yield func(segment.TimeEntry) error) error {
				return segment.ReadTimeIndex(f, size, base, func(_ int64, e segment.TimeEntry) error { return yield(e) })
			})
			return err
		})
	}
	if err != nil {
		closeAll()
		return nil, err
	}
	return closeAll, nil
}

// indexError reports an index that is corrupt in itself; other errors come back.
func (s *segmentCheck) indexError(path string, err error) error {
	var corrupt *segment.CorruptError
	if errors.As(err, &corrupt) {
		if errors.Is(err, segment.ErrTorn) {
			err = errEntryTorn
		}
		s.report(Bad, path, corrupt.Pos, "%s: the next start rebuilds it", problem(err))
		return nil
	}
	return err
}

// offsetEntry compares the entries that point to e, or to the middle of what lies before it.
func (s *segmentCheck) offsetEntry(e *entry) error {
	c := s.offsets
	for c != nil && c.ok && c.head.Pos <= e.pos {
		switch {
		case c.head.Pos < e.pos:
			s.badIndex(c.path, "entry %d@%d points between batches", c.head.Offset, c.head.Pos)
		case c.head.Offset < e.first() || c.head.Offset < e.last() && !e.legacy():
			s.badIndex(c.path, "entry %d@%d points to the batch with offsets %d to %d", c.head.Offset, c.head.Pos, e.first(), e.last())
		case c.head.Offset >= s.limit:
			s.badIndex(c.path, "entry %d@%d has an offset of another segment", c.head.Offset, c.head.Pos)
		}
		if err := s.indexError(c.path, c.advance()); err != nil {
			return err
		}
	}
	return nil
}

// timeEntry compares the entries whose offset lies in e, or in a hole before it.
func (s *segmentCheck) timeEntry(e *entry) error {
	c := s.times
	for c != nil && c.ok && c.head.Offset <= e.last() {
		switch {
		case c.head.Offset < e.first() && !e.legacy():
			s.badIndex(c.path, "entry %d@%d names an offset that no batch holds", c.head.TimestampMs, c.head.Offset)
		case c.head.TimestampMs != e.maxTimestamp():
			s.badIndex(c.path, "entry %d@%d: the batch's max timestamp is %d", c.head.TimestampMs, c.head.Offset, e.maxTimestamp())
		case c.head.TimestampMs < s.maxTimestamp:
			s.badIndex(c.path, "entry %d@%d: a batch before it has timestamp %d", c.head.TimestampMs, c.head.Offset, s.maxTimestamp)
		}
		if err := s.indexError(c.path, c.advance()); err != nil {
			return err
		}
	}
	return nil
}

// badIndex reports an entry that contradicts a log that is sound. Beside a bad one nothing follows from it.
func (s *segmentCheck) badIndex(path, format string, args ...any) {
	if s.sound {
		s.report(Bad, path, -1, format, args...)
	}
}

// finishIndexes reports entries that point behind the log's last batch.
func (s *segmentCheck) finishIndexes(end int64) error {
	for c := s.offsets; c != nil && c.ok; {
		s.badIndex(c.path, "entry %d@%d points behind the log's last batch, which ends at %d", c.head.Offset, c.head.Pos, end)
		if err := s.indexError(c.path, c.advance()); err != nil {
			return err
		}
	}
	for c := s.times; c != nil && c.ok; {
		s.badIndex(c.path, "entry %d@%d lies behind the log's last offset", c.head.TimestampMs, c.head.Offset)
		if err := s.indexError(c.path, c.advance()); err != nil {
			return err
		}
	}
	return nil
}
