package segment

import (
	"context"
	"errors"
	"path/filepath"

	"platter/engine/batch"
	"platter/engine/spindle"
	"platter/io/disk"
)

// TruncateTo drops the batch that contains offset and all behind it, and makes that durable. The segment is
// active afterwards. It returns the offset behind what is left.
func (s *Segment) TruncateTo(offset, intervalBytes int64) (end int64, err error) {
	err = s.with(disk.ReadWrite, func(f disk.File) error {
		at, err := s.locateHealed(f, offset)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		// Readers first: whoever looks now finds the new end.
		size := s.size.Load()
		s.cuts++
		s.size.Store(at.pos)
		s.end.Store(max(at.before+1, s.Base))
		if at.pos < size || s.uncut {
			s.uncut = true
			if err := s.cutFile(f, at.pos, true); err != nil {
				return err
			}
			s.uncut = false
		}
		s.reserved, s.growBytes = 0, 0
		s.dropBads(at.pos)
		if at.pos == 0 {
			s.firstTime.Store(noTime)
		}
		if err := s.reindex(f, at.pos, at.before+1, intervalBytes); err != nil {
			return err
		}
		return s.dropCutMark()
	})
	return s.end.Load(), err
}

// CutMark is the name of a file that stands in the partition's directory while a .log file is cut. A
// process that finds it does not know whether the cut is durable: it looks so in the page cache, and yet
// a power cut would bring the bytes back, behind what was written in their place. So it syncs the file
// first (see SyncCut).
const CutMark = "truncation.pending"

// cutFile cuts the .log file, durably: bytes that come back later could pass for good batches. The mark is
// dropped afterwards, unless keepMark says that more is to be done under it.
func (s *Segment) cutFile(f disk.File, size int64, keepMark bool) error {
	m, err := s.env.FS.Open(filepath.Join(s.env.Dir, CutMark), disk.Create)
	if err == nil {
		err = m.Close()
	}
	if err != nil && !errors.Is(err, disk.ErrFull) { // then the death of the process right here goes unnoticed
		return err
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	if err := f.Sync(); err != nil || keepMark {
		return err
	}
	return s.dropCutMark()
}

func (s *Segment) dropCutMark() error {
	err := s.env.FS.Remove(filepath.Join(s.env.Dir, CutMark))
	if disk.IsNotExist(err) {
		return nil
	}
	return err
}

// SyncCut finishes a cut of which CutMark tells. s is the active segment.
func (s *Segment) SyncCut() error {
	for _, path := range append(s.IndexPaths(), s.path) {
		err := withFile(s.env, path, disk.ReadWrite, disk.File.Sync)
		if err != nil && !disk.IsNotExist(err) {
			return err
		}
	}
	return s.dropCutMark()
}

// locateHealed is locate, with indexes that mislead made anew.
func (s *Segment) locateHealed(f disk.File, offset int64) (place, error) {
	at, err := s.locate(f, offset)
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		if err = s.heal(f, err); err == nil {
			at, err = s.locate(f, offset)
		}
	}
	return at, err
}

// EndBelow is where TruncateTo(offset) would end the segment.
func (s *Segment) EndBelow(offset int64) (end int64, err error) {
	err = s.with(disk.ReadWrite, func(f disk.File) error {
		at, err := s.locateHealed(f, offset)
		end = max(at.before+1, s.Base)
		return err
	})
	return end, err
}

// OffsetAt is the offset at the last boundary between batches at or below pos.
func (s *Segment) OffsetAt(pos int64) (offset int64, err error) {
	err = s.with(disk.ReadWrite, func(f disk.File) error {
		b, err := s.floor(f, pos)
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			if err = s.heal(f, err); err == nil {
				b, err = s.floor(f, pos)
			}
		}
		offset = b.last + 1
		return err
	})
	return offset, err
}

// reindex makes tail and indexes fit a log that now ends at size. mu is held.
func (s *Segment) reindex(f disk.File, size, end, intervalBytes int64) error {
	if err := s.flushIndexes(true); err != nil {
		return err
	}
	s.offsets.fileBytes, s.times.fileBytes = s.offsets.disk*offsetEntryBytes, s.times.disk*timeEntryBytes
	m := s.resume(f, end, false)
	out, err := s.rescan(f, size, m, Pass{Sure: end, Limit: end, CheckFrom: never, IntervalBytes: intervalBytes})
	if err == nil && out.size != size {
		err = &CorruptError{Path: s.path, Pos: out.size, Cause: out.cause}
	}
	if size == 0 {
		s.tail = newTail(boundary{last: s.Base - 1})
	}
	s.loaded, s.timesChecked, s.flushedAt = true, true, size
	if err != nil {
		return err
	}
	return s.flushIndexes(true)
}

// Verify reads every byte below the published size with CRC, and records what is bad. pace, when set, is
// called with the bytes just read. It has no haste, and leaves the page cache alone (spindle.Slow).
func (s *Segment) Verify(ctx context.Context, pace func(bytes int64)) error {
	return s.with(disk.ReadWrite, func(f disk.File) error {
		r := spindle.Slow(f)
		defer r.Close()
		s.mu.Lock()
		size, end, cuts := s.size.Load(), s.end.Load(), s.cuts
		s.mu.Unlock()
		pos, next := int64(0), s.Base
		for pos < size {
			var sc Scanner
			sc.init(r, pos, size, ScanOptions{CRC: true, NextOffset: next, LimitOffset: end})
			for told := pos; sc.Next(); {
				if sc.End()-told < chunkBytes && sc.End() < size {
					continue
				}
				if pace != nil {
					pace(sc.End() - told)
				}
				told = sc.End()
				if err := ctx.Err(); err != nil {
					sc.Close()
					return err
				}
			}
			err := sc.Err()
			pos, next = sc.End(), sc.NextOffset()
			sc.Close()
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				if err != nil {
					return err
				}
				continue
			}
			b, known := s.badAt(pos)
			if !known {
				b = resync(r, pos, size, next, end, err)
			}
			s.mu.Lock()
			if s.cuts != cuts {
				s.mu.Unlock()
				return nil // other bytes stand there by now
			}
			if !known {
				s.logf("%s: bytes %d to %d are bad and not served, offsets %d to %d: %v", s.path, b.Pos, b.End, b.Offset, b.NextOffset-1, err)
				s.addBad(b)
			}
			s.mu.Unlock()
			pos, next = b.End, b.NextOffset
		}
		return nil
	})
}

// Scan calls fn with the header of each batch from the one that contains offset on, until fn returns an
// error. Bad ranges are left out.
func (s *Segment) Scan(offset int64, fn func(b batch.Batch) error) error {
	return s.with(disk.ReadWrite, func(f disk.File) error {
		at, err := s.locateHealed(f, offset)
		if err != nil || at.sizeBytes == 0 {
			return err
		}
		var ferr error
		err = s.batchesFrom(f, at.pos, func(b batch.Batch) (bool, bool) {
			ferr = fn(b)
			return false, ferr == nil
		}, nil)
		return errors.Join(ferr, err)
	})
}
