package commitlog

import (
	"platter/engine/segment"
	"platter/io/disk"
)

// Retain applies time and size retention below highWatermark at nowMs, forgets expired producers, and
// returns how many segments went. The rules are Kafka's: the oldest segments go while the newest record
// in them is older than retention.ms, while the log without them still has retention.bytes, or while
// they lie below the log start; but a timestamp that is still to come counts for nothing. When all are due the active one is rolled and goes too, if the disk has room for another. An aged active
// segment is rolled only by the append that finds it aged (segment.ms), not here: an idle one loses nothing
// by staying, and its records go once they are due.
func (l *Log) Retain(nowMs, highWatermark int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return 0, err
	}
	l.producers.Expire(nowMs, l.cfg.Load().ProducerIDExpirationMs)
	n, err := l.due(nowMs, highWatermark)
	if err != nil || n == 0 {
		return 0, l.fail(err)
	}
	segs := l.view.Load().segs
	if n == len(segs) {
		switch err := l.roll(l.Ends().Written); {
		case isFull(err) && n > 1:
			n-- // no room for a new segment: without the old ones there will be
		case err != nil:
			return 0, l.fail(err)
		}
		segs = l.view.Load().segs
	}
	return n, l.fail(l.raiseStart(segs[n].Base))
}

// due counts the oldest segments that retention may drop.
func (l *Log) due(nowMs, highWatermark int64) (int, error) {
	cfg, start := l.cfg.Load(), l.Ends().Start
	segs := l.view.Load().segs
	excess := l.SizeBytes() - cfg.RetentionBytes
	for i, s := range segs {
		last := i == len(segs)-1
		if s.End() > highWatermark || last && s.SizeBytes() == 0 {
			return i, nil
		}
		drop := !last && s.End() <= start
		if !drop && cfg.DeleteRetention {
			drop = cfg.RetentionBytes >= 0 && excess >= s.SizeBytes()
			if !drop && cfg.RetentionMs >= 0 {
				newest, err := l.newest(s, nowMs)
				if err != nil {
					return i, err
				}
				drop = nowMs-newest > cfg.RetentionMs
			}
		}
		if !drop {
			return i, nil
		}
		excess -= s.SizeBytes()
	}
	return len(segs), nil
}

// newest is the largest timestamp in the segment; when its records have none, or one that is still to come
// (microseconds taken for milliseconds, a producer's wrong clock), the time when the file was last
// written: such a record would keep its segment, and all behind it, for ever.
func (l *Log) newest(s *segment.Segment, nowMs int64) (int64, error) {
	ref, err := s.Acquire()
	if err != nil {
		return 0, err
	}
	defer ref.Release()
	e, err := s.MaxTime(ref.File())
	if err != nil || e.TimestampMs >= 0 && e.TimestampMs <= nowMs {
		return e.TimestampMs, err
	}
	in, err := l.o.FS.Stat(s.Path())
	if disk.IsNotExist(err) {
		return l.o.Clock.NowMs(), nil
	}
	return in.ModTimeMs, err
}
