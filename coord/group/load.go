package group

import (
	"errors"
	"fmt"
	"time"

	"platter/coord/group/core"
	"platter/coord/group/record"
	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/replication/replica"
)

// loading is what has been read of a partition so far.
type loading struct {
	s       *shard
	groups  map[string]*core.Snapshot
	offsets map[string]map[store.TP]core.Offset
	records int
	invalid int // records that make no sense
	buf     []byte
	batches []batch.Batch
}

// What cannot be loaded is tried again after this long, each time twice as long.
const (
	loadRetryMin = 100 * time.Millisecond
	loadRetryMax = 10 * time.Second
)

// load reads the partition, then lets the shard serve. When it cannot be read (too many files are open, say) it is
// tried again for as long as the shard lives; clients go on asking meanwhile.
func (s *shard) load() {
	for wait := loadRetryMin; !s.loadOnce(wait); wait = min(2*wait, loadRetryMax) {
		select {
		case <-s.c.cfg.Clock.After(wait):
		case <-s.c.life.Done():
			return
		}
	}
}

// loadOnce tries once; false: again, after wait.
func (s *shard) loadOnce(wait time.Duration) bool {
	c := s.c
	select {
	case c.loads <- struct{}{}:
		defer func() { <-c.loads }()
	case <-c.life.Done():
		return true
	}
	began := time.Now()
	l := &loading{s: s, groups: map[string]*core.Snapshot{}, offsets: map[string]map[store.TP]core.Offset{}}
	err := l.read()
	switch {
	case errors.Is(err, replica.ErrNotLeader), errors.Is(err, replica.ErrUnknownPartition), errors.Is(err, errStopped):
		return true
	case err != nil:
		c.cfg.Log.Error("groups could not be loaded; their clients wait until they are", "partition", s.String(), "again_in", wait, "err", err)
		return false
	}
	l.finish()
	if l.records > 0 {
		c.cfg.Log.Info("groups are loaded", "partition", s.String(), "groups", len(l.groups), "records", l.records, "took", time.Since(began))
	}
	if l.invalid > 0 {
		c.cfg.Log.Warn("some stored records of groups make no sense, and were passed over", "partition", s.String(), "records", l.invalid)
	}
	c.notify()
	return true
}

// errStopped: leadership went while the shard was being loaded.
var errStopped = errors.New("loading was stopped")

// read reads the whole partition. A stored batch that is corrupt is passed over: what it held is lost, but
// all other groups go on.
func (l *loading) read() error {
	r, err := l.s.c.replicaOf(l.s.partition)
	if err != nil {
		return err
	}
	st, err := r.State(-1)
	if err != nil {
		return err
	}
	end := st.LogEnd
	for at := st.LogStart; at < end; {
		if l.s.isStopped() {
			return errStopped
		}
		next, err := l.readSome(r, at)
		var past bool
		if errors.Is(err, commitlog.ErrCorrupt) {
			if next, past = skipBad(r, next); past {
				l.lost(at, next, err)
				err = nil
			}
		}
		switch {
		case errors.Is(err, commitlog.ErrOffsetOutOfRange):
			st, err := r.State(-1)
			if err != nil || st.LogStart <= at {
				return errors.Join(commitlog.ErrOffsetOutOfRange, err)
			}
			next = st.LogStart // the start has moved
		case err != nil:
			return err
		case next <= at:
			return fmt.Errorf("nothing at offset %d of %d", at, end)
		}
		at = next
	}
	return l.awaitCommitted(r, end)
}

// awaitCommitted waits until what was read is committed: another leader may not have the end of it, and an offset that
// somebody was told would go back. An in-sync set that is too small to commit anything is not waited for.
func (l *loading) awaitCommitted(r *replica.Replica, end int64) error {
	w := replica.NewWaiter()
	r.Watch(w)
	defer r.Unwatch(w)
	for !l.s.isStopped() {
		st, err := r.State(-1)
		if err != nil {
			return err
		}
		if leadershipOf(&st) != l.s.led {
			return errStopped
		}
		if is, leads := r.Leadership(); st.HighWatermark >= end || leads && is.ISR < is.MinISR {
			return nil
		}
		select {
		case <-w.C:
		case <-l.s.c.cfg.Clock.After(commitLook):
		}
	}
	return errStopped
}

// commitLook is how often it is looked whether the shard has been stopped.
const commitLook = 100 * time.Millisecond

// skipBad is the first readable offset behind a bad range.
func skipBad(r *replica.Replica, at int64) (next int64, ok bool) {
	for _, b := range r.Log().BadRanges() {
		if b.Offset <= at && at < b.NextOffset {
			return b.NextOffset, true
		}
	}
	return at, false
}

// readSome replays the batches from offset at on, as many as one buffer takes.
func (l *loading) readSome(r *replica.Replica, at int64) (next int64, err error) {
	read, st, err := r.Read(at, int64(l.s.c.cfg.LoadBytes), replica.LogEnd, -1, true)
	if err != nil {
		return at, err
	}
	defer read.Release()
	if leadershipOf(&st) != l.s.led {
		return at, errStopped
	}
	for _, g := range read.Ranges {
		if int64(cap(l.buf)) < g.Len {
			l.buf = make([]byte, g.Len)
		}
		p := l.buf[:g.Len]
		if _, err := g.File.ReadAt(p, g.Pos); err != nil {
			return at, err
		}
		var split error
		l.batches, split = batch.Split(l.batches[:0], p)
		for _, b := range l.batches {
			if err := l.replay(b); err != nil {
				l.lost(b.BaseOffset(), b.LastOffset()+1, err)
			}
			at = b.LastOffset() + 1
		}
		if split != nil { // the log finds a place to go on from there, or says that there is none
			if len(l.batches) == 0 {
				return at, fmt.Errorf("%w: %w", commitlog.ErrCorrupt, split)
			}
			return at, nil
		}
	}
	return read.NextOffset, nil
}

// lost says that stored offsets [from, next) cannot be read: the groups are without what stood there.
func (l *loading) lost(from, next int64, err error) {
	l.s.c.cfg.Log.Error("a stored batch of groups is corrupt and is passed over", "partition", l.s.String(), "offset", from, "next", next, "err", err)
}

func (l *loading) replay(b batch.Batch) error {
	if b.Control() {
		return nil
	}
	if err := batch.CheckCRC(b); err != nil {
		return err
	}
	return batch.Walk(b, 0, func(r *batch.Record) error {
		l.records++
		if err := l.apply(r); err != nil {
			l.invalid++
			l.s.c.cfg.Log.Debug("record of groups is passed over", "partition", l.s.String(), "offset", b.BaseOffset()+int64(r.OffsetDelta), "err", err)
		}
		return nil
	})
}

// apply takes in one record; the last one of each key counts.
func (l *loading) apply(r *batch.Record) error {
	k, err := record.ReadKey(r.Key)
	if err != nil {
		return err
	}
	switch {
	case k.Kind == record.Others:
	case k.Kind == record.Group && r.Value == nil:
		delete(l.groups, k.Group)
	case k.Kind == record.Group:
		s, err := record.ReadGroup(r.Value)
		if err != nil {
			return err
		}
		l.groups[k.Group] = s
	case r.Value == nil:
		delete(l.offsets[k.Group], k.TP)
	default:
		o, err := record.ReadOffset(r.Value)
		if err != nil {
			return err
		}
		if l.offsets[k.Group] == nil {
			l.offsets[k.Group] = map[store.TP]core.Offset{}
		}
		k.TP.Topic = l.s.c.names.of(k.TP.Topic)
		l.offsets[k.Group][k.TP] = o
	}
	return nil
}

// finish makes the groups of what was read, and lets the shard serve.
func (l *loading) finish() {
	s := l.s
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	now := s.now()
	for id, snapshot := range l.groups {
		e := &entry{Group: core.Restore(&s.c.cfg.Config, id, snapshot, now), index: -1}
		s.groups[id] = e
	}
	for id, offsets := range l.offsets {
		if len(offsets) == 0 {
			continue
		}
		e := s.group(id, now)
		for tp, o := range offsets {
			e.Commit(tp, o)
		}
	}
	s.loaded = true
	for _, e := range s.groups {
		s.settle(e)
	}
	s.forgetTopics(s.deleted)
	s.deleted = nil
	s.alarm()
	s.mu.Unlock()
	s.flush()
}

func (s *shard) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}
