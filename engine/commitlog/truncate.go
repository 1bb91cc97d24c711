package commitlog

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"platter/engine/producer"
	"platter/engine/segment"
	"platter/io/disk"
)

// A truncation is durable, step by step, in an order that a crash may end anywhere: first nothing may be
// taken for sure any more that is about to go (recovery point, producer snapshots), then the records go,
// the newest first, so that there is never a hole, then what may only be too long is clamped (epochs).
//
// A full disk may interrupt it too. Up to the first record that goes nothing has changed then. From there on the log is
// in between: what is to be done stays noted, each step can be done again, and whatever would change the log next
// (an append, a term, a truncation, a close) does it first, or has the disk's error.

// resume finishes a truncation that was interrupted. mu is held.
func (l *Log) resume() error {
	if l.unfinished == nil {
		return nil
	}
	return l.fail(l.finally(l.unfinished))
}

// ready says whether the log may be changed. mu is held.
func (l *Log) ready() error {
	if err := l.status(); err != nil {
		return err
	}
	return l.resume()
}

// finally does the rest of a truncation, and notes it while it fails. mu is held.
func (l *Log) finally(rest func() error) error {
	l.unfinished = rest
	if err := rest(); err != nil {
		return err
	}
	l.unfinished = nil
	return nil
}

// TruncateTo drops all records at and above offset (durably ordered: epochs, producers and recovery point
// too). A batch that straddles offset goes whole: the log end may then lie below it.
func (l *Log) TruncateTo(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("%w: %d", ErrOffsetOutOfRange, offset)
	}
	if offset >= l.Ends().Written {
		l.unassign()
		return l.status()
	}
	if offset < l.view.Load().segs[0].Base {
		return l.fail(l.truncateFully(offset))
	}
	return l.fail(l.truncateTo(offset))
}

func (l *Log) truncateTo(offset int64) error {
	v := l.view.Load()
	keep := v.find(offset)
	target := v.segs[keep]
	end, err := target.EndBelow(offset)
	if err != nil {
		return err
	}
	if err := l.unsure(end, func(snapshot int64) bool { return snapshot > end }); err != nil {
		return err
	}
	l.setEnds(func(e *Ends) { e.Written, e.Start = end, min(e.Start, end) })
	l.view.Store(&view{slices.Clone(v.segs[:keep+1])})
	return l.finally(func() error { return l.cut(v, keep, offset, end) })
}

// cut takes the records from offset on out of the files; v are the segments as they were, of which the one at keep
// ends at end now. It may be done again.
func (l *Log) cut(v *view, keep int, offset, end int64) error {
	target := v.segs[keep]
	for i := len(v.segs) - 1; i > keep; i-- {
		if err := l.retireDurably(v.segs[i]); err != nil {
			return err
		}
	}
	if _, err := target.TruncateTo(offset, l.cfg.Load().IndexIntervalBytes); err != nil {
		return err
	}
	if err := l.epochs.TruncateFromEnd(end); err != nil {
		return err
	}
	if err := l.epochs.Sync(); err != nil {
		return err
	}
	return l.reloadProducers()
}

// unsure lowers recovery point and log start to offset, on disk too, and removes the producer snapshots that drop
// names. mu is held.
func (l *Log) unsure(offset int64, drop func(snapshot int64) bool) error {
	l.lineage++
	l.dirty = true
	if before := l.Ends(); before.Durable > offset || before.Start > offset {
		// First here: who writes the checkpoints meanwhile must not find the old ones.
		l.setEnds(func(e *Ends) { e.Durable, e.Start = min(e.Durable, offset), min(e.Start, offset) })
		if err := l.lowerRecoveryPoint(offset); err != nil {
			l.setEnds(func(e *Ends) { e.Durable, e.Start = before.Durable, before.Start }) // to be lowered by the next try
			return err
		}
	}
	removed, err := producer.RemoveSnapshots(l.o.FS, l.o.Dir, drop)
	if err != nil {
		return err
	}
	l.snapshots.offsets = slices.DeleteFunc(l.snapshots.offsets, drop)
	if removed {
		return l.o.FS.SyncDir(l.o.Dir)
	}
	return nil
}

func (l *Log) lowerRecoveryPoint(offset int64) error {
	if l.o.LowerRecoveryPoint == nil {
		return nil
	}
	return l.o.LowerRecoveryPoint(offset)
}

// TruncateFully empties the log and starts it at offset.
func (l *Log) TruncateFully(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("%w: %d", ErrOffsetOutOfRange, offset)
	}
	return l.fail(l.truncateFully(offset))
}

func (l *Log) truncateFully(offset int64) error {
	if err := l.unsure(min(offset, l.Ends().Durable), func(int64) bool { return true }); err != nil {
		return err
	}
	return l.finally(func() error { return l.empty(offset) })
}

// empty takes all segments away and begins anew at offset. It may be done again.
func (l *Log) empty(offset int64) error {
	segs := l.view.Load().segs
	for i := len(segs) - 1; i >= 0; i-- {
		if err := l.retireDurably(segs[i]); err != nil {
			return err
		}
	}
	l.producers.Clear()
	if err := l.epochs.Clear(); err != nil {
		return err
	}
	if err := l.epochs.Sync(); err != nil {
		return err
	}
	active, err := l.create(offset)
	if err != nil {
		return err
	}
	l.view.Store(&view{[]*segment.Segment{active}})
	l.unsynced = 0
	l.setEnds(func(e *Ends) { e.Start, e.Written = offset, offset })
	if err := l.syncDirs(); err != nil {
		return err
	}
	l.setEnds(func(e *Ends) { e.Durable = offset })
	return nil
}

// TrimTo raises the log start offset (DeleteRecords, follower catching up); whole segments below go.
func (l *Log) TrimTo(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	e := l.Ends()
	if offset > e.Written {
		return fmt.Errorf("%w: trim to %d, the end is %d", ErrOffsetOutOfRange, offset, e.Written)
	}
	if offset <= e.Start {
		return nil
	}
	return l.fail(l.raiseStart(offset))
}

// raiseStart moves the log start and retires the segments that lie below it. The active one stays.
func (l *Log) raiseStart(offset int64) error {
	l.dirty = true
	l.setEnds(func(e *Ends) { e.Start = max(e.Start, offset) })
	v := l.view.Load()
	drop := v.find(offset)
	first := v.segs[drop].Base
	if n := len(l.snapshots.offsets); drop > 0 && (n == 0 || l.snapshots.offsets[n-1] < first) {
		// What is known of producers whose records are all trimmed would be lost with the older snapshots.
		if err := l.snapshot(l.Ends().Written); err != nil {
			return err
		}
	}
	if drop > 0 {
		l.view.Store(&view{slices.Clone(v.segs[drop:])})
	}
	for _, s := range v.segs[:drop] {
		// One by one and in order: a power cut must leave neither an older segment without a newer one, nor
		// nothing at all, should the active segment's entry be younger.
		if l.dirChanged() {
			if err := l.syncDirs(); err != nil {
				return err
			}
		}
		if err := l.retire(s); err != nil {
			return err
		}
	}
	if err := l.epochs.TruncateFromStart(offset); err != nil {
		return err
	}
	if drop == 0 {
		return nil
	}
	for len(l.snapshots.offsets) > 0 && l.snapshots.offsets[0] < first {
		if err := l.removeSnapshot(l.snapshots.offsets[0]); err != nil {
			return err
		}
		l.snapshots.offsets = l.snapshots.offsets[1:]
	}
	return nil
}

func (l *Log) retireDurably(s *segment.Segment) error {
	if err := l.retire(s); err != nil {
		return err
	}
	return l.o.FS.SyncDir(l.o.Dir)
}

// retire renames a segment's files away and lets them be removed after file.delete.delay.ms. mu is held.
func (l *Log) retire(s *segment.Segment) error {
	gone, err := s.Retire()
	if len(gone) > 0 {
		l.dirChanges++
		delay := time.Duration(max(0, l.cfg.Load().FileDeleteDelayMs)) * time.Millisecond
		l.o.Clock.AfterFunc(delay, func() { l.background(func() { l.remove(gone) }) })
	}
	return err
}

// remove deletes retired files. What is left by a failure, or by the end of the process, goes at the next
// start.
func (l *Log) remove(paths []string) {
	if l.status() != nil {
		return
	}
	for _, p := range paths {
		if err := l.removeFile(p); err != nil && !disk.IsNotExist(err) {
			l.logf("remove %s: %v", filepath.Base(p), err)
		}
	}
}

// removeFile removes a file that counts as gone already.
func (l *Log) removeFile(path string) error {
	if l.o.Remove != nil {
		return l.o.Remove(path)
	}
	return l.o.FS.Remove(path)
}
