package segment

import (
	"errors"

	"platter/engine/batch"
	"platter/io/disk"
)

// KnownMaxTime is MaxTime when that needs no look at a file; TimestampMs is -1 when no record has a timestamp.
func (s *Segment) KnownMaxTime() (e TimeEntry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxTime, s.size.Load() == 0 || s.tail != nil || s.loaded && s.timesChecked
}

// MaxTime is the largest timestamp in the segment, with the last offset of the first batch that has it;
// TimestampMs is -1 when no record has a timestamp. f is the .log file.
func (s *Segment) MaxTime(f disk.File) (TimeEntry, error) {
	s.mu.Lock()
	err := s.load()
	e, checked := s.maxTime, s.timesChecked || s.tail != nil || s.size.Load() == 0
	s.mu.Unlock()
	if err == nil && !checked {
		if err = s.checkTime(f, e); err == nil {
			err = s.checkNewest(f, e)
		}
		if err == nil {
			s.mu.Lock()
			s.timesChecked = true
			s.mu.Unlock()
		}
	}
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		if err = s.heal(f, err); err == nil {
			s.mu.Lock()
			e = s.maxTime
			s.mu.Unlock()
		}
	}
	return e, err
}

// checkTime compares a time entry with the batch that it names.
func (s *Segment) checkTime(f disk.File, e TimeEntry) error {
	at, err := s.locate(f, e.Offset)
	if err != nil {
		return err
	}
	if at.sizeBytes > 0 && at.last == e.Offset {
		var sc Scanner
		sc.init(f, at.pos, s.size.Load(), ScanOptions{})
		defer sc.Close()
		if sc.Next() && sc.Batch().MaxTimestamp() == e.TimestampMs {
			return nil
		}
		if _, known := s.badAt(at.pos); known {
			return nil
		}
	}
	return &CorruptError{Pos: at.pos, Cause: ErrIndex}
}

// checkNewest compares the largest timestamp with the last batch: an index may have lost its tail.
func (s *Segment) checkNewest(f disk.File, e TimeEntry) error {
	at, err := s.floor(f, s.size.Load()-1)
	if err != nil {
		return err
	}
	var sc Scanner
	sc.init(f, at.end, s.size.Load(), ScanOptions{})
	defer sc.Close()
	if sc.Next() && sc.Batch().MaxTimestamp() > e.TimestampMs {
		return &CorruptError{Pos: at.end, Cause: ErrIndex}
	}
	return nil
}

// FindTime calls fn with each batch, in order, that ends at or above the offset from and whose max timestamp is
// at least ts, until fn returns false. The bytes are valid during fn. Bad ranges are left out.
func (s *Segment) FindTime(f disk.File, ts, from int64, fn func(b batch.Batch) (more bool)) error {
	newest, err := s.MaxTime(f)
	if err != nil || newest.TimestampMs < ts {
		return err
	}
	e, err := s.floorTime(ts)
	if err == nil && e.TimestampMs >= 0 {
		err = s.checkTime(f, e)
	}
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		if err = s.heal(f, err); err == nil {
			e, err = s.floorTime(ts)
		}
	}
	if err != nil {
		return err
	}
	at, err := s.locate(f, max(e.Offset+1, from))
	if err != nil || at.sizeBytes == 0 {
		return err
	}
	return s.batchesFrom(f, at.pos, func(b batch.Batch) (bool, bool) { return b.MaxTimestamp() >= ts, true }, fn)
}

// BatchAt reads the whole batch that contains offset, or is the first behind it, and calls fn with it.
func (s *Segment) BatchAt(f disk.File, offset int64, fn func(b batch.Batch)) error {
	at, err := s.locate(f, offset)
	if err != nil || at.sizeBytes == 0 {
		return err
	}
	return s.batchesFrom(f, at.pos, func(batch.Batch) (bool, bool) { return true, true }, func(b batch.Batch) bool {
		fn(b)
		return false
	})
}

// batchesFrom reads from pos on, and gives fn whole batches that look takes by their headers, until one
// of the two wants no more.
func (s *Segment) batchesFrom(f disk.File, pos int64, look func(batch.Batch) (take, more bool), fn func(batch.Batch) bool) error {
	size, end := s.published()
	for healed := false; pos < size; {
		var sc Scanner
		sc.init(f, pos, size, ScanOptions{LimitOffset: end})
		for sc.Next() {
			take, more := look(sc.Batch())
			if !more {
				sc.Close()
				return nil
			}
			if !take {
				continue
			}
			b, err := sc.view(sc.pos, sc.SizeBytes(), sc.SizeBytes())
			if err != nil || !fn(b) {
				sc.Close()
				return err
			}
		}
		err := sc.Err()
		pos = sc.End()
		sc.Close()
		if err == nil {
			return nil
		}
		bad, known := s.badAt(pos)
		var corrupt *CorruptError
		if !known && !healed && errors.As(err, &corrupt) {
			if err = s.heal(f, err); err != nil {
				return err
			}
			healed = true
			bad, known = s.badAt(pos)
		}
		if !known {
			return err
		}
		pos = bad.End
	}
	return nil
}

// floorTime is the last time entry with a timestamp below ts; TimestampMs -1 and an offset below the
// segment's when there is none.
func (s *Segment) floorTime(ts int64) (TimeEntry, error) {
	match := func(p []byte) bool { return decodeTimeEntry(p, s.Base).TimestampMs < ts }
	none := TimeEntry{TimestampMs: -1, Offset: s.Base - 1}
	s.mu.Lock()
	p := s.times.lastPending(match)
	n := s.times.disk
	if p != nil {
		e := decodeTimeEntry(p, s.Base)
		s.mu.Unlock()
		return e, nil
	}
	s.mu.Unlock()
	if n == 0 {
		return none, nil
	}
	e := none
	err := withFile(s.env, s.pathOf(TimeIndexSuffix), disk.ReadWrite, func(f disk.File) error {
		p, _, err := lastBelow(f, n, timeEntryBytes, anywhere, match)
		if p != nil {
			e = decodeTimeEntry(p, s.Base)
		}
		return err
	})
	if disk.IsNotExist(err) || err == nil && e.Offset < none.Offset {
		err = &CorruptError{Cause: ErrIndex}
	}
	return e, err
}

// FirstTime is the max timestamp of the first batch, which time-based rolling counts from; ok is false for
// an empty segment, or when it has none.
func (s *Segment) FirstTime() (ms int64, ok bool, err error) {
	if ms = s.firstTime.Load(); ms != noTime {
		return ms, ms >= 0, nil
	}
	size := s.size.Load()
	if size == 0 {
		return 0, false, nil
	}
	err = s.with(disk.ReadWrite, func(f disk.File) error {
		var sc Scanner
		sc.init(f, 0, size, ScanOptions{})
		defer sc.Close()
		ms = -1
		if sc.Next() {
			ms = sc.Batch().MaxTimestamp()
			return nil
		}
		if err := sc.Err(); !errors.As(err, new(*CorruptError)) {
			return err
		}
		return nil
	})
	if err == nil {
		s.firstTime.Store(ms)
	}
	return ms, ms >= 0, err
}
