package segment

import (
	"errors"

	"platter/engine/batch"
	"platter/io/disk"
)

// load looks at a sealed segment's index files for the first time: how many entries they have, and the
// largest timestamp. mu is held. A *CorruptError asks for a heal.
func (s *Segment) load() error {
	if s.loaded {
		return nil
	}
	err := s.loadHint(&s.offsets)
	if err == nil {
		err = s.loadHint(&s.times)
	}
	if err == nil && s.size.Load() > 0 {
		s.maxTime, err = s.lastTime()
		s.indexedTime = s.maxTime.TimestampMs
	}
	if disk.IsNotExist(err) {
		return &CorruptError{Cause: errors.Join(ErrIndex, err)}
	}
	s.loaded = err == nil
	return err
}

// loadHint counts the entries of an index file. More of them than batches fit the log, or a broken size, is
// garbage; so is a missing file.
func (s *Segment) loadHint(h *hint) error {
	size := s.size.Load()
	switch {
	case size == 0:
		h.disk, h.trimmed = 0, h.fileBytes == 0
		return nil
	case h.fileBytes < 0 || h.fileBytes%h.width != 0:
		return &CorruptError{Cause: ErrIndex}
	}
	return withFile(s.env, s.pathOf(h.suffix), disk.ReadWrite, func(f disk.File) error {
		most := size/batch.HeaderBytes + 1
		n, err := usedEntries(f, min(h.fileBytes/h.width, most+1), h.width) // however long a zero tail is
		if err != nil {
			return err
		}
		if n > most {
			return &CorruptError{Cause: ErrIndex}
		}
		h.disk, h.trimmed = n, n*h.width == h.fileBytes
		return nil
	})
}

// lastTime reads the last time entry, which holds the segment's largest timestamp.
func (s *Segment) lastTime() (e TimeEntry, err error) {
	if s.times.disk == 0 {
		return e, &CorruptError{Cause: ErrIndex}
	}
	err = withFile(s.env, s.pathOf(TimeIndexSuffix), disk.ReadWrite, func(f disk.File) error {
		var p [timeEntryBytes]byte
		if err := readFull(f, p[:], (s.times.disk-1)*timeEntryBytes); err != nil {
			return err
		}
		e = decodeTimeEntry(p[:], s.Base)
		return nil
	})
	if err == nil && e.Offset < s.Base {
		err = &CorruptError{Cause: ErrIndex}
	}
	return e, err
}

// heal reads the whole log's headers, rewrites the indexes, and remembers what is bad. It holds mu, so that
// readers which were misled by the same index wait for it.
func (s *Segment) heal(f disk.File, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired.Load() {
		return ErrGone
	}
	s.logf("%s: %v: reading the segment anew", s.path, why)
	size, sealed := s.size.Load(), s.tail == nil
	end := s.end.Load()
	res, err := s.rescan(f, size, mark{}, Pass{Sure: end, Limit: end, CheckFrom: never, IntervalBytes: s.env.IntervalBytes()})
	switch {
	case err != nil || res.size == size:
	case sealed && res.end == end:
		// All batches are here. Kafka with preallocate=true leaves zeros behind them when it dies.
		s.logf("%s: %d bytes behind the last batch count for nothing: %v", s.path, size-res.size, res.cause)
		s.size.Store(res.size)
	default:
		err = &CorruptError{Path: s.path, Pos: res.size, Cause: res.cause}
	}
	if sealed {
		s.addTime()
		s.tail = nil
	}
	if err != nil {
		return err
	}
	s.loaded, s.timesChecked = true, true
	return s.flushIndexes(true)
}

// mark is where a scan resumes: at the batch of an index entry, with the entries up to it kept.
type mark struct {
	pos, base      int64 // of the batch
	offsets, times int64 // entries kept
	maxTime        TimeEntry
}

// resume finds the last trustworthy index entry whose batch ends below the offset limit. When the indexes may
// have lost any part of themselves (a power cut), all of them is read.
func (s *Segment) resume(f disk.File, limit int64, powerCut bool) mark {
	if s.loadHint(&s.offsets) != nil || s.loadHint(&s.times) != nil || s.offsets.disk == 0 || s.times.disk == 0 {
		return mark{}
	}
	if powerCut {
		if s.cutUnordered() != nil || s.times.disk == 0 {
			return mark{}
		}
		last, err := s.lastTime()
		if err != nil {
			return mark{}
		}
		limit = min(limit, last.Offset+1) // times that were lost are found again
	}
	var m mark
	var e OffsetEntry
	err := withFile(s.env, s.pathOf(IndexSuffix), disk.ReadWrite, func(x disk.File) error {
		p, i, err := lastBelow(x, s.offsets.disk, offsetEntryBytes, 1, func(p []byte) bool {
			return decodeOffsetEntry(p, s.Base).Offset < limit
		})
		if p != nil {
			e, m.offsets = decodeOffsetEntry(p, s.Base), i+1
		}
		return err
	})
	if err != nil || m.offsets == 0 {
		return mark{}
	}
	base, ok := s.leadsTo(f, e)
	if !ok {
		return mark{}
	}
	err = withFile(s.env, s.pathOf(TimeIndexSuffix), disk.ReadWrite, func(x disk.File) error {
		p, i, err := lastBelow(x, s.times.disk, timeEntryBytes, 1, func(p []byte) bool {
			return decodeTimeEntry(p, s.Base).Offset <= e.Offset
		})
		if p != nil {
			m.maxTime, m.times = decodeTimeEntry(p, s.Base), i+1
		}
		return err
	})
	if err != nil || m.times == 0 {
		return mark{}
	}
	m.pos, m.base = e.Pos, base
	return m
}

// keepLastTime takes back the time entry that a close had put behind those kept, when the scan has found the
// same: an untouched log is not written to. had is how many entries there were. mu is held.
func (s *Segment) keepLastTime(had, kept int64) {
	if had != kept+1 || len(s.times.pending) > 0 || s.indexedTime >= s.maxTime.TimestampMs {
		return
	}
	s.times.disk = had
	if last, err := s.lastTime(); err == nil && last == s.maxTime {
		s.indexedTime = last.TimestampMs
		return
	}
	s.times.disk = kept
}

// leadsTo reports whether the batch at the entry's position is the one that it means, and its base offset.
func (s *Segment) leadsTo(f disk.File, e OffsetEntry) (base int64, ok bool) {
	if e.Pos <= 0 || e.Pos >= s.size.Load() {
		return 0, false
	}
	var sc Scanner
	sc.init(f, e.Pos, s.size.Load(), ScanOptions{NextOffset: s.Base})
	defer sc.Close()
	if !sc.Next() || sc.Batch().LastOffset() != e.Offset {
		return 0, false
	}
	return sc.Batch().BaseOffset(), true
}

// cutUnordered keeps of both indexes what rises, from the start on.
func (s *Segment) cutUnordered() error {
	errStop := errors.New("stop")
	err := withFile(s.env, s.pathOf(IndexSuffix), disk.ReadWrite, func(f disk.File) error {
		last, n := OffsetEntry{Offset: s.Base - 1, Pos: 0}, int64(0)
		err := ReadOffsetIndex(f, s.offsets.disk*offsetEntryBytes, s.Base, func(_ int64, e OffsetEntry) error {
			if e.Offset <= last.Offset || e.Pos <= last.Pos || e.Pos >= s.size.Load() {
				return errStop
			}
			last, n = e, n+1
			return nil
		})
		s.offsets.cut(n)
		return err
	})
	if err != nil && !errors.Is(err, errStop) {
		return err
	}
	err = withFile(s.env, s.pathOf(TimeIndexSuffix), disk.ReadWrite, func(f disk.File) error {
		last, n := TimeEntry{TimestampMs: -1, Offset: s.Base - 1}, int64(0)
		err := ReadTimeIndex(f, s.times.disk*timeEntryBytes, s.Base, func(_ int64, e TimeEntry) error {
			if e.Offset <= last.Offset || e.TimestampMs <= last.TimestampMs {
				return errStop
			}
			last, n = e, n+1
			return nil
		})
		s.times.cut(n)
		return err
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}
