package segment

import (
	"errors"

	"platter/engine/batch"
	"platter/io/disk"
)

// Append writes the batches, whose offsets are set, behind each other: all or nothing. bufs is scratch of
// the same length, to be filled with the same bytes. The indexes get an entry wherever more than
// intervalBytes have gathered. An index that cannot be written is no failure here (see FlushIndexes).
func (s *Segment) Append(bs []batch.Batch, bufs [][]byte, intervalBytes int64) error {
	size := s.size.Load()
	total := int64(0)
	for i, b := range bs {
		bufs[i] = b
		total += int64(len(b))
	}
	err := s.with(disk.ReadWrite, func(f disk.File) error {
		s.growAhead(f, size, size+total)
		if _, err := f.WriteV(bufs, size); err != nil {
			return s.undo(f, size, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if size == 0 {
		s.firstTime.Store(bs[0].MaxTimestamp())
	}
	s.mu.Lock()
	pos := size
	for _, b := range bs {
		s.note(b.LastOffset(), b.MaxTimestamp(), pos, int64(len(b)), intervalBytes)
		pos += int64(len(b))
	}
	s.size.Store(pos)
	s.end.Store(bs[len(bs)-1].LastOffset() + 1)
	s.mu.Unlock()
	return nil
}

// undo cuts back what a failed write left. The cut is synced: bytes that come back after a power cut, behind
// what is written in their place, could pass for good batches.
func (s *Segment) undo(f disk.File, size int64, cause error) error {
	err := s.cutFile(f, size, false)
	s.reserved = 0
	if err != nil {
		return errors.Join(cause, ErrUnsafe, err)
	}
	return cause
}

// note takes one batch into the tail and the indexes; mu is held.
func (s *Segment) note(last, maxTimestamp, pos, size, intervalBytes int64) {
	if maxTimestamp > s.maxTime.TimestampMs {
		s.maxTime = TimeEntry{maxTimestamp, last}
	}
	if s.since > intervalBytes {
		s.offsets.add(func(p []byte) []byte { return appendOffsetEntry(p, s.Base, OffsetEntry{last, pos}) })
		s.addTime()
		s.since = 0
	}
	s.since += size
	s.tail.push(boundary{last: last, end: pos + size})
}

// addTime appends the largest timestamp so far, unless the index has it.
func (s *Segment) addTime() {
	if s.maxTime.TimestampMs > s.indexedTime {
		s.times.add(func(p []byte) []byte { return appendTimeEntry(p, s.Base, s.maxTime) })
		s.indexedTime = s.maxTime.TimestampMs
	}
}

// FlushIndexes writes the pending index entries: when a group is full, or with force all of them. A full
// disk is no error: the entries wait, the oldest are dropped.
func (s *Segment) FlushIndexes(force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushIndexes(force)
}

func (s *Segment) flushIndexes(force bool) error {
	pending := int64(len(s.offsets.pending)) / offsetEntryBytes
	if !force && (pending == 0 || pending < groupEntries && s.size.Load()-s.flushedAt < groupBytes) {
		return nil
	}
	s.indexDirty = true
	// Times first: they may run ahead of the offsets, but must not lag (see resume).
	err := s.times.write(s)
	if err == nil {
		err = s.offsets.write(s)
	}
	if errors.Is(err, disk.ErrFull) || errors.Is(err, disk.ErrShortWrite) {
		return nil
	}
	if err == nil {
		s.flushedAt = s.size.Load()
	}
	return err
}

// Finish brings the indexes on disk to where Kafka leaves them when a segment is sealed or closed: all
// entries, and the largest timestamp. The room that was reserved goes back.
func (s *Segment) Finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail == nil || s.size.Load() == 0 {
		return nil
	}
	s.addTime()
	if err := s.flushIndexes(true); err != nil {
		return err
	}
	if s.releasable {
		s.releasable, s.reserved, s.growBytes = false, 0, 0
		return s.with(disk.ReadWrite, func(f disk.File) error {
			if err := f.ReleaseTail(); err != nil && !errors.Is(err, disk.ErrUnsupported) {
				return err
			}
			return nil
		})
	}
	return nil
}

// Seal makes the segment a sealed one: it finishes it and forgets the tail. end is the next one's base.
func (s *Segment) Seal(end int64) error {
	if err := s.Finish(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = nil
	s.end.Store(end)
	return nil
}
