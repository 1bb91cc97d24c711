package segment

import (
	"errors"
	"math"

	"platter/engine/batch"
	"platter/io/disk"
)

// never is a CheckFrom that no batch reaches.
const never = math.MaxInt64

// Pass says how a segment is read through.
type Pass struct {
	// Sure: below this offset the log was whole; what is bad there is disk rot and is kept. From it on,
	// the first bad batch is where the torn tail starts.
	Sure int64
	// Limit: batches end below this offset; 0: no limit.
	Limit int64
	// CheckFrom: batches are checked with CRC from this offset on, others by their headers.
	CheckFrom int64
	// Strict: from Sure on, a gap between offsets is a hole that a crash has left, and the tail starts there.
	Strict bool
	// PowerCut: the indexes may have lost any part of themselves.
	PowerCut bool
	// FromStart: the indexes are not used at all.
	FromStart bool
	// KeepTorn plants a bug for the crash simulation: the torn tail stays.
	KeepTorn      bool
	IntervalBytes int64
	Each          func(b batch.Batch)   // the header of each good batch that was read
	Progress      func(toScan, n int64) // growth of what will be read, and of what was; may be nil
	Stop          func() error          // asked now and then; its error ends the pass; may be nil
}

// Result is what a pass found.
type Result struct {
	From  int64 // offset of the first batch that was read
	Cut   int64 // bytes of torn tail
	Cause error // why it was cut
}

// scanned is where a rescan ended.
type scanned struct {
	size  int64
	end   int64
	cause error
}

// Recover opens the segment as an active one: the indexes are brought up to date with the log, from their last
// good entry on, and the torn tail is cut. The cut is durable when it returns.
func Recover(env *Env, files Files, p Pass) (*Segment, Result, error) {
	s := newSegment(env, files.Base)
	s.offsets.fileBytes, s.times.fileBytes = files.IndexBytes, files.TimeIndexBytes
	var res Result
	err := s.with(disk.ReadWrite, func(f disk.File) error {
		size, err := f.Size()
		if err != nil {
			return err
		}
		s.size.Store(size)
		var m mark
		if !p.FromStart {
			limit := int64(never)
			if p.PowerCut {
				limit = p.Sure
			}
			m = s.resume(f, limit, p.PowerCut)
		}
		if p.Progress != nil {
			p.Progress(size-m.pos, 0)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		had := s.times.disk
		out, err := s.rescan(f, size, m, p)
		if err != nil {
			return err
		}
		s.keepLastTime(had, m.times)
		res = Result{From: s.scanFrom, Cut: size - out.size, Cause: out.cause}
		s.size.Store(out.size)
		s.end.Store(out.end)
		s.flushedAt = out.size
		s.loaded, s.timesChecked = true, true
		s.releasable = p.CheckFrom != never && out.size >= max(env.Growth.FirstBytes, 1) // what a dead process had reserved
		if res.Cut == 0 {
			return nil
		}
		if p.KeepTorn {
			s.size.Store(size)
			return nil
		}
		s.logf("%s: cut %d bytes of torn tail at %d: %v", s.path, res.Cut, out.size, out.cause)
		return s.cutFile(f, out.size, false)
	})
	if err != nil {
		return nil, res, err
	}
	return s, res, s.FlushIndexes(s.offsets.stale() || s.times.stale())
}

// rescan reads the batches from m on, makes the index entries and the tail anew, and records the bad ranges.
// It publishes no size or end. mu is held.
func (s *Segment) rescan(f disk.File, size int64, m mark, p Pass) (scanned, error) {
	s.offsets.cut(m.offsets)
	s.times.cut(m.times)
	s.since, s.maxTime, s.indexedTime = 0, TimeEntry{TimestampMs: -1, Offset: s.Base}, -1
	if m.times > 0 {
		s.maxTime, s.indexedTime = m.maxTime, m.maxTime.TimestampMs
	}
	s.tail = newTail(boundary{last: max(s.Base, m.base) - 1, end: m.pos})
	s.scanFrom = never
	out := scanned{size: m.pos, end: max(s.Base, m.base)}
	for {
		err := s.rescanRun(f, size, &out, p)
		var corrupt *CorruptError
		if err == nil || !errors.As(err, &corrupt) {
			s.scanFrom = min(s.scanFrom, out.end)
			return out, err
		}
		if out.end >= p.Sure {
			out.cause = err
			s.scanFrom = min(s.scanFrom, out.end)
			return out, nil
		}
		b := resync(f, out.size, size, out.end, p.Sure, err)
		s.addBad(b)
		s.logf("%s: bytes %d to %d are bad and not served, offsets %d to %d: %v", s.path, b.Pos, b.End, b.Offset, b.NextOffset-1, err)
		out.size, out.end = b.End, b.NextOffset
		s.tail.push(boundary{last: b.NextOffset - 1, end: b.End})
	}
}

// rescanRun reads good batches up to the first bad one.
func (s *Segment) rescanRun(f disk.File, size int64, out *scanned, p Pass) error {
	var sc Scanner
	sc.init(f, out.size, size, ScanOptions{NextOffset: out.end, LimitOffset: p.Limit})
	defer sc.Close()
	told := out.size
	for {
		sc.o.CRC = sc.off >= p.CheckFrom
		if !sc.Next() {
			break
		}
		b := sc.Batch()
		first := s.scanFrom == never
		if first {
			s.scanFrom = b.BaseOffset()
		} else if p.Strict && out.end >= p.Sure && b.BaseOffset() != out.end {
			return &CorruptError{Pos: sc.Pos(), Cause: ErrOffset}
		}
		if b.LastOffset()-s.Base > math.MaxInt32 {
			return &CorruptError{Pos: sc.Pos(), Cause: ErrOffset}
		}
		s.note(b.LastOffset(), b.MaxTimestamp(), sc.Pos(), sc.SizeBytes(), p.IntervalBytes)
		if first && sc.Pos() > 0 {
			// Where the batch before ended is not known: the tail starts behind this one.
			s.tail = newTail(boundary{last: b.LastOffset(), end: sc.End()})
		}
		if p.Each != nil {
			p.Each(b)
		}
		out.size, out.end = sc.End(), sc.NextOffset()
		if len(s.offsets.pending) >= groupEntries*offsetEntryBytes {
			if err := s.flushIndexes(true); err != nil {
				return err
			}
		}
		if out.size-told < chunkBytes {
			continue
		}
		if p.Progress != nil {
			p.Progress(0, out.size-told)
		}
		told = out.size
		if p.Stop != nil {
			if err := p.Stop(); err != nil {
				return err
			}
		}
	}
	if p.Progress != nil {
		p.Progress(0, out.size-told)
	}
	return sc.Err()
}

// addBad records b, in order of position. mu is held.
func (s *Segment) addBad(b Bad) {
	var all []Bad
	for _, old := range s.Bads() {
		if old.Pos != b.Pos {
			all = append(all, old)
		}
	}
	all = append(all, b)
	for i := len(all) - 1; i > 0 && all[i-1].Pos > all[i].Pos; i-- {
		all[i-1], all[i] = all[i], all[i-1]
	}
	s.bad.Store(&all)
}

// dropBads forgets the bad ranges that start at or above pos.
func (s *Segment) dropBads(pos int64) {
	var keep []Bad
	for _, b := range s.Bads() {
		if b.Pos < pos {
			keep = append(keep, b)
		}
	}
	s.bad.Store(&keep)
}
