package commitlog

import (
	"errors"
	"slices"

	"platter/engine/batch"
	"platter/engine/producer"
	"platter/engine/segment"
	"platter/io/disk"
)

// OffsetForTime finds the first record whose timestamp is at least ts; ok is false when there is none.
func (l *Log) OffsetForTime(ts int64) (m TimeMatch, ok bool, err error) {
	start := l.Ends().Start
	older := func(newest int64) bool { return newest < ts }
	err = l.eachSegment(older, func(s *segment.Segment, f disk.File) (bool, error) {
		var walkErr error
		err := s.FindTime(f, ts, start, func(b batch.Batch) bool {
			m, ok, walkErr = l.recordFrom(b, start, func(t int64) bool { return t >= ts })
			return !ok && walkErr == nil
		})
		return !ok, errors.Join(err, walkErr)
	})
	return m, ok && err == nil, err
}

// recordFrom finds the batch's first record at or above start whose timestamp want takes.
func (l *Log) recordFrom(b batch.Batch, start int64, want func(ms int64) bool) (m TimeMatch, ok bool, err error) {
	err = batch.Walk(b, l.cfg.Load().DecompressedBytesMax, func(r *batch.Record) error {
		offset, ms := b.BaseOffset()+int64(r.OffsetDelta), b.TimestampOf(r)
		if offset < start || !want(ms) {
			return nil
		}
		m, ok = TimeMatch{Offset: offset, TimestampMs: ms, LeaderEpoch: b.LeaderEpoch()}, true
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return m, ok, err
}

var errFound = errors.New("found")

// MaxTimestamp finds the record with the largest timestamp (KIP-734), the first of several; ok is false for
// an empty log, and when no record has a timestamp.
func (l *Log) MaxTimestamp() (m TimeMatch, ok bool, err error) {
	start := l.Ends().Start
	older := func(newest int64) bool { return newest < 0 || ok && newest <= m.TimestampMs }
	err = l.eachSegment(older, func(s *segment.Segment, f disk.File) (bool, error) {
		newest, err := s.MaxTime(f)
		if err == nil && s.Base < start {
			newest, err = l.maxFrom(s, start) // what the index names may be trimmed
		}
		if err != nil || newest.TimestampMs < 0 || ok && newest.TimestampMs <= m.TimestampMs {
			return true, err
		}
		var walkErr error
		err = s.BatchAt(f, newest.Offset, func(b batch.Batch) {
			var found TimeMatch
			var any bool
			found, any, walkErr = l.recordFrom(b, start, func(t int64) bool { return t == newest.TimestampMs })
			if any {
				m, ok = found, true
			}
		})
		return true, errors.Join(err, walkErr)
	})
	return m, ok && err == nil, err
}

// maxFrom is the largest timestamp of the segment's records from start on.
func (l *Log) maxFrom(s *segment.Segment, start int64) (segment.TimeEntry, error) {
	newest := segment.TimeEntry{TimestampMs: -1}
	straddles := false
	err := s.Scan(start, func(b batch.Batch) error {
		if b.BaseOffset() < start {
			straddles = true
		} else if t := b.MaxTimestamp(); t > newest.TimestampMs {
			newest = segment.TimeEntry{TimestampMs: t, Offset: b.LastOffset()}
		}
		return nil
	})
	if err != nil || !straddles {
		return newest, err
	}
	ref, err := s.Acquire()
	if err != nil {
		return newest, err
	}
	defer ref.Release()
	var walkErr error
	err = s.BatchAt(ref.File(), start, func(b batch.Batch) {
		_, _, walkErr = l.recordFrom(b, start, func(t int64) bool {
			if t >= newest.TimestampMs {
				newest = segment.TimeEntry{TimestampMs: t, Offset: b.LastOffset()}
			}
			return false
		})
	})
	return newest, errors.Join(err, walkErr)
}

// eachSegment calls fn with the non-empty segments and their pinned files, until it says no. Those whose
// largest timestamp is known, and skip takes it, are left out without a look at their files.
func (l *Log) eachSegment(skip func(newestMs int64) bool, fn func(s *segment.Segment, f disk.File) (more bool, err error)) error {
	if err := l.status(); err != nil {
		return err
	}
	for _, s := range l.view.Load().segs {
		if e, known := s.KnownMaxTime(); known && skip(e.TimestampMs) || s.SizeBytes() == 0 {
			continue
		}
		ref, err := s.Acquire()
		if errors.Is(err, segment.ErrGone) {
			continue // retired since: it is below the log start now
		}
		if err != nil {
			return l.fail(err)
		}
		more, err := fn(s, ref.File())
		ref.Release()
		if errors.Is(err, segment.ErrGone) {
			continue // meanwhile
		}
		if isCorrupt(err) || errors.As(err, new(*batch.CorruptError)) { // the second: within a batch
			err = errors.Join(ErrCorrupt, err)
		}
		if err != nil || !more {
			return l.fail(err)
		}
	}
	return nil
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest known epoch not above epoch, and where
// it ends. (-1, -1) when unknown (KIP-101, KIP-279).
func (l *Log) EndOffsetForEpoch(epoch int32) (int32, int64) {
	return l.epochs.EndOffsetFor(epoch, l.Ends().Written)
}

// EpochAt is the leader epoch that offset was, or would be, appended in; -1 when unknown.
func (l *Log) EpochAt(offset int64) int32 { return l.epochs.At(offset) }

// LatestEpoch is the newest leader epoch in the log, -1 when none.
func (l *Log) LatestEpoch() int32 {
	e, _ := l.epochs.Latest()
	return e
}

// AssignEpoch records that a leader epoch starts at the log end (called when this broker becomes leader).
// The file is written with the epoch's first batch: a broker that restarts begins a term in each of its
// partitions, and most of them may never see a record in it.
func (l *Log) AssignEpoch(epoch int32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	if latest, _ := l.epochs.Latest(); epoch <= latest {
		return nil
	}
	l.epochs.AssignQuiet(epoch, l.Ends().Written)
	return nil
}

// Producer is one idempotent producer as DescribeProducers tells it.
type Producer = producer.Producer

// Producers lists the idempotent producers that the log knows, by id.
func (l *Log) Producers() []Producer {
	l.mu.Lock()
	defer l.mu.Unlock()
	ps := l.producers.Producers()
	slices.SortFunc(ps, func(a, b Producer) int { return int(min(max(a.ProducerID-b.ProducerID, -1), 1)) })
	return ps
}
