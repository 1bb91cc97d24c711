package commitlog

import (
	"errors"
	"fmt"
	"strings"

	"platter/engine/batch"
	"platter/engine/segment"
	"platter/io/disk"
	"platter/io/memdisk"
)

func (s *sim) step() error {
	ops := []struct {
		weight int
		name   string
		run    func() error
	}{
		{30, "append", s.stepAppend},
		{8, "append group", s.stepGroup},
		{5, "append from leader", s.stepFollow},
		{5, "retry", s.stepRetry},
		{5, "sync", func() error { return s.log.Sync() }},
		{5, "jobs", s.stepJobs},
		{4, "checkpoint", s.stepCheckpoint},
		{4, "roll", func() error { return s.log.Roll() }},
		{3, "truncate", s.stepTruncate},
		{1, "truncate fully", s.stepTruncateFully},
		{3, "trim", s.stepTrim},
		{3, "retain", s.stepRetain},
		{2, "new leader epoch", s.stepEpoch},
		{3, "full disk", s.stepFull},
		{1, "failed sync", s.stepFailedSync},
		{2, "failed write", s.stepFailedWrite},
		{5, "time passes", func() error { s.clock.advance(s.rng.Int64N(300)); return nil }},
	}
	total := 0
	for _, o := range ops {
		total += o.weight
	}
	n := s.rng.IntN(total)
	for _, o := range ops {
		if n -= o.weight; n >= 0 {
			continue
		}
		s.logf("%s, at %+v", o.name, s.log.Ends())
		if err := o.run(); err != nil {
			return s.outcome(fmt.Errorf("%s: %w", o.name, err))
		}
		return s.broken
	}
	return nil
}

func (s *sim) stepAppend() error {
	n := 1
	if s.rng.IntN(5) == 0 {
		n += s.rng.IntN(3)
	}
	a := &Append{}
	for i := range n {
		var change func(*batch.Builder)
		if i == 0 && s.rng.IntN(2) == 0 {
			change = s.idempotent
		}
		a.Batches = append(a.Batches, s.batch(change))
	}
	return s.accept(s.enqueue([]*Append{a}))
}

// accept allows those refusals that random input deserves.
func (s *sim) accept(results []Appended) error {
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, ErrRecordListTooLarge) && !errors.Is(r.Err, batch.ErrTooLarge) {
			return r.Err
		}
	}
	return nil
}

func (s *sim) stepGroup() error {
	var as []*Append
	for range 2 + s.rng.IntN(6) {
		as = append(as, &Append{Batches: []batch.Batch{s.batch(nil)}})
	}
	return s.accept(s.enqueue(as))
}

func (s *sim) stepFollow() error {
	a := &Append{Origin: Follower}
	next := s.m.end
	for range 1 + s.rng.IntN(4) {
		b := s.batch(nil)
		if s.cfg.Compacted {
			next += s.rng.Int64N(3)
		}
		b.SetBaseOffset(next)
		b.SetLeaderEpoch(s.leaderEpoch)
		next = b.LastOffset() + 1
		a.Batches = append(a.Batches, b)
	}
	return s.accept(s.enqueue([]*Append{a}))
}

func (s *sim) stepJobs() error {
	for len(s.jobs) > 0 {
		f := s.jobs[0]
		s.jobs = s.jobs[1:]
		f()
	}
	return nil
}

func (s *sim) stepCheckpoint() error {
	s.recoveryPoint, s.startOffset = s.log.RecoveryPoint(), s.log.Ends().Start
	s.m.startLow = s.startOffset
	return nil
}

func (s *sim) offset() int64 { return s.m.start + s.rng.Int64N(s.m.end-s.m.start+1) }

func (s *sim) stepTruncate() error {
	offset := s.offset()
	if s.rng.IntN(3) > 0 {
		offset = max(s.m.start, s.m.end-s.rng.Int64N(10))
	}
	if offset < s.m.end {
		base := s.log.view.Load().segs[0].Base
		s.m.lowEnd = max(base, s.m.below(offset))
		if offset < base {
			s.m.lowEnd, s.m.emptied = 0, offset
		}
	}
	if err := s.log.TruncateTo(offset); err != nil {
		return err
	}
	e := s.log.Ends()
	s.logf("  truncated to %d: %+v", offset, e)
	if e.Written > offset {
		return fmt.Errorf("truncated to %d, the end is %d", offset, e.Written)
	}
	if s.m.emptied >= 0 {
		s.m.startLow = min(s.m.startLow, e.Start)
	}
	if offset < s.m.end {
		s.m.cut(offset)
		s.m.end, s.m.start = e.Written, min(s.m.start, e.Start)
	}
	s.afterCut()
	return nil
}

func (s *sim) afterCut() {
	s.m.lowEnd, s.m.emptied = -1, -1
	s.m.promised = min(s.m.promised, s.m.end)
	s.startOffset, s.m.startLow = min(s.startOffset, s.m.start), min(s.m.startLow, s.m.start)
	s.m.gathered = 0
	for id, p := range s.sequences {
		w := s.m.producersOf()[id]
		if len(w) == 0 {
			delete(s.sequences, id)
			continue
		}
		last := w[len(w)-1]
		*p = simProducer{
			epoch: last.epoch, next: last.sequence + int32(last.last-last.base) + 1,
			lost: last.base < s.log.view.Load().segs[0].Base,
		}
	}
}

func (s *sim) stepTruncateFully() error {
	offset := s.rng.Int64N(s.m.end + 20)
	s.m.emptied = offset
	if err := s.log.TruncateFully(offset); err != nil {
		return err
	}
	s.m.hist, s.m.start, s.m.end = nil, offset, offset
	s.m.startLow = offset
	s.startOffset = min(s.startOffset, offset)
	s.afterCut()
	return nil
}

func (s *sim) stepTrim() error {
	offset := s.offset()
	s.m.newStart = offset
	if err := s.log.TrimTo(offset); err != nil {
		return err
	}
	s.m.start, s.m.newStart = max(s.m.start, offset), -1
	return nil
}

func (s *sim) stepRetain() error {
	hw := s.offset()
	s.m.newStart = hw
	if _, err := s.log.Retain(s.clock.ms, hw); err != nil {
		return err
	}
	start := s.log.Ends().Start
	if start < s.m.start || start > max(hw, s.m.start) {
		return fmt.Errorf("retention below %d moved the start from %d to %d", hw, s.m.start, start)
	}
	s.m.start, s.m.newStart = start, -1
	return nil
}

func (s *sim) stepEpoch() error {
	s.leaderEpoch += 1 + int32(s.rng.IntN(2))
	return s.log.AssignEpoch(s.leaderEpoch)
}

// stepFull appends while the disk has next to no room: refused, or not, the log stays whole; with room
// again it takes records again.
func (s *sim) stepFull() error {
	s.fs.SetCapacity(s.fs.UsedBytes() + s.rng.Int64N(3)*4096)
	defer s.fs.SetCapacity(0)
	for range 1 + s.rng.IntN(30) {
		for _, r := range s.enqueue([]*Append{{Batches: []batch.Batch{s.batch(s.idempotent)}}}) {
			if r.Err != nil && !errors.Is(r.Err, disk.ErrFull) {
				return r.Err
			}
		}
		if err := s.settled(); err != nil {
			return err
		}
	}
	s.fs.SetCapacity(0)
	return s.stepAppend()
}

// stepFailedWrite makes a write fail half-way, for want of room or by a bad medium. The one leaves the log as it
// was, the other offline.
func (s *sim) stepFailedWrite() error {
	cause := error(disk.ErrFull)
	if s.rng.IntN(4) == 0 {
		cause = errors.New("simulated I/O error")
	}
	hits := 0
	s.fs.SetHook(func(o memdisk.Op) error {
		if o.Kind == "write" && strings.HasSuffix(o.Path, segment.LogSuffix) {
			hits++
			return cause
		}
		return nil
	})
	defer s.fs.SetHook(nil)
	for range 2 {
		for _, r := range s.enqueue([]*Append{
			{Batches: []batch.Batch{s.batch(s.idempotent)}}, {Batches: []batch.Batch{s.batch(nil), s.batch(nil)}},
		}) {
			if s.fs.Crashed() {
				return errSimCrash
			}
			if !errors.Is(r.Err, cause) && !errors.Is(r.Err, ErrRecordListTooLarge) {
				return fmt.Errorf("append with a failing write: %+v", r)
			}
		}
	}
	if errors.Is(cause, disk.ErrFull) || hits == 0 {
		return nil
	}
	if err := s.log.Sync(); !errors.Is(err, ErrOffline) {
		return fmt.Errorf("a failed write gives %w", err)
	}
	return errSimCrash
}

// stepFailedSync makes a sync fail: the log must be offline, and the page cache counts for nothing.
func (s *sim) stepFailedSync() error {
	failed := errors.New("simulated I/O error")
	hit := false
	s.fs.SetHook(func(o memdisk.Op) error {
		if o.Kind == "sync" && strings.HasSuffix(o.Path, segment.LogSuffix) {
			hit = true
			return failed
		}
		return nil
	})
	defer s.fs.SetHook(nil)
	err := s.log.Sync()
	if s.fs.Crashed() {
		return errSimCrash
	}
	if !hit {
		return err
	}
	if !errors.Is(err, ErrOffline) {
		return fmt.Errorf("a failed sync gives %w", err)
	}
	if r := s.enqueue([]*Append{{Batches: []batch.Batch{s.batch(nil)}}})[0]; !errors.Is(r.Err, ErrOffline) {
		return fmt.Errorf("append after a failed sync: %+v", r)
	}
	s.sameBoot = false
	return errSimCrash
}
