package commitlog

import (
	"hash/fnv"
	"math"
	"slices"

	"platter/engine/batch"
	"platter/engine/producer"
	"platter/engine/segment"
	"platter/io/disk"
)

// Roll seals the active segment when it is not empty.
func (l *Log) Roll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	return l.fail(l.roll(l.Ends().Written))
}

// rollFor rolls before batches that the active segment must not take. What is in the chunk belongs to
// the old segment and is written first. mu is held.
func (l *Log) rollFor(a *Append, bs []batch.Batch, bytes int64) error {
	active := l.view.Load().active()
	c := &l.chunk
	pending := c.bytes
	last := bs[len(bs)-1].LastOffset()
	if a.Origin == Client {
		last = l.chunkEnd() - 1
		for _, b := range bs {
			last += int64(b.LastOffsetDelta()) + 1
		}
	}
	maxTimestamp := int64(-1)
	for _, b := range bs {
		maxTimestamp = max(maxTimestamp, b.MaxTimestamp())
	}
	due, err := l.rollDue(active, active.SizeBytes()+pending, bytes, maxTimestamp, last)
	if err != nil {
		return l.fail(err)
	}
	if !due {
		return nil
	}
	l.flushChunk()
	if err := l.status(); err != nil {
		return err
	}
	base := l.Ends().Written
	if last-base > math.MaxInt32 { // a follower's gap of more than an index can span
		base = bs[0].BaseOffset()
	}
	return l.fail(l.roll(base))
}

// chunkEnd is the offset that the next batch gets.
func (l *Log) chunkEnd() int64 {
	if len(l.chunk.batches) > 0 {
		return l.chunk.next
	}
	return l.Ends().Written
}

// rollDue has Kafka's rules (LogSegment.shouldRoll): size; age, which is the distance of the new records'
// timestamps to the first batch's, or of the clock to the segment's creation when they have none; a
// full index; an offset that an index entry cannot hold.
func (l *Log) rollDue(s *segment.Segment, size, bytes, maxTimestamp, last int64) (bool, error) {
	cfg := l.cfg.Load()
	if last-s.Base > math.MaxInt32 {
		return true, nil
	}
	if size == 0 {
		return false, nil
	}
	if size+bytes > min(cfg.SegmentBytes, segment.PosMax) || s.IndexFull(cfg.SegmentIndexBytes) {
		return true, nil
	}
	first, timed, err := s.FirstTime()
	if err != nil {
		return false, err
	}
	age := maxTimestamp - first
	if !timed || maxTimestamp < 0 {
		age = l.o.Clock.NowMs() - s.CreatedMs
	}
	return age > cfg.SegmentMs-l.jitter(s.Base, cfg), nil
}

// jitter spreads the rolls of partitions that were created together. It is the same at every look.
func (l *Log) jitter(base int64, cfg *Config) int64 {
	n := min(cfg.SegmentJitterMs, cfg.SegmentMs)
	if n <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(l.o.Dir + segment.LogName(base)))
	return int64(h.Sum64() % uint64(n))
}

// roll makes a new active segment at base and hands the old one to the background for a sync. An empty
// active segment stays, unless it starts elsewhere. mu is held.
func (l *Log) roll(base int64) error {
	v := l.view.Load()
	old := v.active()
	segs := slices.Clone(v.segs)
	switch {
	case old.SizeBytes() > 0:
		if base > l.Ends().Written || l.cfg.Load().Compacted {
			// Where there may be gaps, a lost end of the old segment could not be told from one.
			if err := l.syncLocked(); err != nil {
				return err
			}
		}
		// Only the newest segment's entry may be lost in a power cut, or one behind a hole could stay.
		if l.dirChanged() {
			if err := l.syncDirs(); err != nil {
				return err
			}
		}
		if err := old.Seal(base); err != nil {
			return err
		}
	case old.Base == base:
		return nil
	default:
		if err := l.retire(old); err != nil {
			return err
		}
		segs = segs[:len(segs)-1]
	}
	active, err := l.create(base)
	if err != nil {
		if old.SizeBytes() > 0 {
			return l.unseal(old, err)
		}
		return l.fail(err)
	}
	l.view.Store(&view{append(segs, active)})
	l.setEnds(func(e *Ends) { e.Written = base })
	if err := l.snapshot(base); err != nil {
		return err
	}
	l.background(func() {
		if err := l.Sync(); err != nil {
			l.logf("sync behind a roll: %v", err)
		}
	})
	return nil
}

// create makes an empty segment. mu is held.
func (l *Log) create(base int64) (*segment.Segment, error) {
	cfg := l.cfg.Load()
	reserve := int64(0)
	if cfg.Preallocate {
		reserve = cfg.SegmentBytes
	}
	l.dirChanges++
	l.dirty = true
	return segment.Create(l.env, base, l.o.Clock.NowMs(), reserve)
}

// unseal makes the old segment active again after its successor could not be made.
func (l *Log) unseal(old *segment.Segment, cause error) error {
	if _, err := old.TruncateTo(l.Ends().Written, l.cfg.Load().IndexIntervalBytes); err != nil {
		return err
	}
	return cause
}

// snapshotBytes is how far the log grows between two producer snapshots, and what is read of its tail at
// least after the death of the process. It is more than a client's retries can span: five batches.
const snapshotBytes = 8 << 20

// snapshots is the producer snapshots in the directory.
type snapshots struct {
	offsets []int64 // rising
	grown   int64   // bytes since the newest
}

// maybeSnapshot takes a snapshot between rolls. It costs more the more producers there are, so many
// producers get fewer. mu is held.
func (l *Log) maybeSnapshot() {
	const entryBytes = 46
	if l.snapshots.grown < max(l.snapshotBytes, int64(l.producers.Count())*entryBytes*8) {
		return
	}
	if err := l.snapshot(l.Ends().Written); err != nil {
		_ = l.fail(err)
	}
}

// snapshot writes the producers as of offset, which is the log end, and drops what is superseded: of those
// that are not at a segment's base the last two stay, should a power cut tear the newest. On a full disk
// none is written. mu is held.
func (l *Log) snapshot(offset int64) error {
	sn := &l.snapshots
	sn.grown = 0
	if n := len(sn.offsets); n > 0 && sn.offsets[n-1] == offset {
		return nil
	}
	if err := l.producers.WriteSnapshot(l.o.FS, l.o.Dir, offset); err != nil {
		if isFull(err) {
			_, err = producer.RemoveSnapshots(l.o.FS, l.o.Dir, func(o int64) bool { return o == offset })
		}
		return err
	}
	l.dirChanges++
	sn.offsets = append(sn.offsets, offset)
	v, loose := l.view.Load(), 0
	for i := len(sn.offsets) - 1; i >= 0; i-- {
		o := sn.offsets[i]
		if v.segs[v.find(o)].Base == o {
			continue
		}
		if loose++; loose <= 2 {
			continue
		}
		if err := l.removeSnapshot(o); err != nil {
			return err
		}
		sn.offsets = slices.Delete(sn.offsets, i, i+1)
	}
	return nil
}

func (l *Log) removeSnapshot(offset int64) error {
	err := l.o.FS.Remove(l.pathOf(segment.SnapshotName(offset)))
	if disk.IsNotExist(err) {
		return nil
	}
	return err
}
