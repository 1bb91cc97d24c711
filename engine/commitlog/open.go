package commitlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"platter/engine/batch"
	"platter/engine/epoch"
	"platter/engine/producer"
	"platter/engine/segment"
	"platter/io/disk"
)

// Open loads the log in o.Dir, recovering it as the hints in o demand, and creates it when it is not
// there: finish interrupted deletes and swaps, cut the torn tail, clamp leader epochs, drop producer
// snapshots beyond the end and rebuild producer state.
func Open(ctx context.Context, o Options) (*Log, error) {
	l := &Log{o: o, producers: producer.New(), dirty: !o.CleanShutdown, snapshotBytes: snapshotBytes}
	if o.snapshotBytes > 0 {
		l.snapshotBytes = o.snapshotBytes
	}
	l.cfg.Store(&o.Config)
	// Nobody knows what the last process left unsynced.
	if !o.CleanShutdown {
		l.dirChanges, l.parentChanged = 1, true
	}
	growth := segment.DefaultGrowth
	if o.Growth != nil {
		growth = *o.Growth
	}
	if !o.FS.Caps(o.Dir).Preallocate {
		growth = segment.Growth{}
	}
	l.env = &segment.Env{
		Growth: growth, NowMs: o.Clock.NowMs,
		FS: o.FS, Handles: o.Handles, Dir: o.Dir, Logf: l.o.Logf,
		IntervalBytes: func() int64 { return l.cfg.Load().IndexIntervalBytes },
	}
	infos, err := o.FS.ReadDir(o.Dir)
	if disk.IsNotExist(err) {
		l.parentChanged = true
		l.dirChanges++
		infos, err = nil, o.FS.MkdirAll(o.Dir)
	}
	if err == nil {
		infos, err = l.finishInterrupted(infos)
	}
	if err != nil {
		return nil, err
	}
	if err := l.load(ctx, infos); err != nil {
		if v := l.view.Load(); v != nil {
			l.forget()
		}
		return nil, fmt.Errorf("open log %s: %w", o.Dir, err)
	}
	if e := l.Ends(); plantedByTag == plantedLoseLast && !o.CleanShutdown && e.Written > e.Start {
		return l, l.TruncateTo(e.Written - 1)
	}
	return l, nil
}

// load does all but the finishing of interrupted work. Nobody else has the log yet.
func (l *Log) load(ctx context.Context, infos []disk.Info) (err error) {
	if l.epochs, err = epoch.Open(l.o.FS, l.o.Dir); err != nil {
		if !errors.Is(err, epoch.ErrCorrupt) {
			return err
		}
		l.logf("leader epochs are lost: %v", err)
	}
	l.snapshots.offsets = producer.SnapshotsIn(infos)
	files := segment.FromInfos(infos)
	if len(files) == 0 {
		l.view.Store(&view{})
		return l.startEmpty(max(0, l.o.LogStartOffset))
	}
	r := recovery{l: l, ctx: ctx, files: files}
	if err := r.run(); err != nil {
		return err
	}
	l.view.Store(&view{r.segs})
	if slices.ContainsFunc(infos, func(in disk.Info) bool { return in.Name == segment.CutMark }) {
		if err := l.view.Load().active().SyncCut(); err != nil {
			return err
		}
	}
	first, end := r.segs[0].Base, l.view.Load().active().End()
	if end < l.o.LogStartOffset {
		l.logf("ends at %d, below the log start %d: starting anew there", end, l.o.LogStartOffset)
		l.ends = Ends{Start: end, Written: end, Durable: end}
		return l.truncateFully(l.o.LogStartOffset)
	}
	sure := min(l.o.RecoveryPoint, end)
	if l.o.CleanShutdown {
		sure = end
	}
	l.ends = Ends{Start: max(first, l.o.LogStartOffset), Written: end, Durable: max(sure, first)}
	l.unsynced = max(0, end-l.ends.Durable) // what the last process may have answered for only after a sync
	if end < l.o.RecoveryPoint {
		l.logf("ends at %d, below the recovery point %d", end, l.o.RecoveryPoint)
		l.dirty = true
		if err := l.lowerRecoveryPoint(end); err != nil {
			return err
		}
	}
	if err := l.clampEpochs(); err != nil {
		return err
	}
	return l.loadProducers(l.o.CleanShutdown)
}

// startEmpty makes the first segment.
func (l *Log) startEmpty(base int64) error {
	if l.o.RecoveryPoint > base {
		if err := l.lowerRecoveryPoint(base); err != nil {
			return err
		}
	}
	active, err := l.create(base)
	if err != nil {
		return err
	}
	l.view.Store(&view{[]*segment.Segment{active}})
	l.ends = Ends{Start: base, Written: base, Durable: base}
	if err := l.clampEpochs(); err != nil {
		return err
	}
	return l.loadProducers(false)
}

func (l *Log) clampEpochs() error {
	err := l.epochs.TruncateFromEnd(l.ends.Written)
	if err == nil {
		err = l.epochs.TruncateFromStart(l.ends.Start)
	}
	if err == nil {
		err = l.extendEpochs()
	}
	if err == nil {
		err = l.epochs.Write()
	}
	if isFull(err) {
		return nil // the history in memory is right for what the batches say; the file catches up
	}
	return err
}

// extendEpochs finds the epochs of batches that lie before the history: the file was lost, or it was cut by
// a trim whose new log start did not outlive a crash.
func (l *Log) extendEpochs() error {
	known, from := l.epochs.Entries(), l.ends.Written
	if len(known) > 0 {
		from = known[0].StartOffset
	}
	errEnough := errors.New("nothing more to find")
	var found []epoch.Entry
	latest := int32(epoch.None)
	for _, s := range l.view.Load().segs {
		if s.End() <= l.ends.Start || from <= l.ends.Start {
			continue
		}
		err := s.Scan(l.ends.Start, func(b batch.Batch) error {
			if b.BaseOffset() >= from || b.LeaderEpoch() < 0 {
				return errEnough
			}
			if b.LeaderEpoch() > latest {
				latest = b.LeaderEpoch()
				found = append(found, epoch.Entry{Epoch: latest, StartOffset: max(b.BaseOffset(), l.ends.Start)})
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return err
		}
	}
	if len(found) == 0 {
		return nil
	}
	for _, e := range append(found, known...) {
		l.epochs.AssignQuiet(e.Epoch, e.StartOffset)
	}
	return nil
}

// recovery reads the segments as far as the hints make it necessary.
type recovery struct {
	l     *Log
	ctx   context.Context
	files []segment.Files
	segs  []*segment.Segment
}

func (r *recovery) run() error {
	l, last := r.l, len(r.files)-1
	powerCut := !l.o.CleanShutdown && !l.o.SameBoot
	first := last
	if powerCut {
		// A segment that ends at the recovery point too: its indexes may be younger than the last sync.
		for first > 0 && r.files[first].Base >= l.o.RecoveryPoint {
			first--
		}
		if err := l.epochs.TruncateFromEnd(l.o.RecoveryPoint); err != nil && !isFull(err) {
			return err
		}
	}
	for i, f := range r.files[:first] {
		end := r.files[i+1].Base
		r.segs = append(r.segs, segment.Open(l.env, f, end, l.o.CleanShutdown || end < l.o.RecoveryPoint))
	}
	pass := l.pass(powerCut)
	pass.Stop = r.ctx.Err
	told := pass.Progress
	if told != nil { // all that will be read, but for the first, whose indexes are still to be looked at
		told(r.bytesFrom(first+1), 0)
	}
	for i := first; i <= last; i++ {
		if i == first+1 && told != nil {
			pass.Progress = func(_, n int64) { told(0, n) }
		}
		s, res, err := segment.Recover(l.env, r.files[i], pass)
		if err != nil {
			return err
		}
		s.CreatedMs = l.o.Clock.NowMs()
		r.segs = append(r.segs, s)
		l.dirty = l.dirty || res.Cut > 0
		if i == last {
			break
		}
		next := r.files[i+1].Base
		if res.Cut > 0 || s.End() > next || s.End() < next && !l.cfg.Load().Compacted {
			// What follows would stand behind a hole.
			l.logf("%d segments behind offset %d are dropped", last-i, s.End())
			if told != nil {
				told(0, r.bytesFrom(i+1))
			}
			return r.drop(i + 1)
		}
		if err := s.Seal(next); err != nil {
			return err
		}
	}
	return nil
}

// bytesFrom is the size of the segments from the i-th on.
func (r *recovery) bytesFrom(i int) (n int64) {
	for _, f := range r.files[i:] {
		n += f.LogBytes
	}
	return n
}

// pass says how segments are read: after a clean shutdown only the headers behind the last index entry;
// after the death of the process the same with CRC; after a power cut everything from the recovery point on.
func (l *Log) pass(powerCut bool) segment.Pass {
	c := l.cfg.Load()
	p := segment.Pass{
		Sure: l.o.RecoveryPoint, CheckFrom: 0, Strict: !c.Compacted, PowerCut: powerCut,
		IntervalBytes: c.IndexIntervalBytes, Progress: l.o.Progress, KeepTorn: l.o.planted == plantedKeepTorn,
		Each: func(b batch.Batch) {
			if latest, _ := l.epochs.Latest(); b.LeaderEpoch() > latest {
				l.epochs.AssignQuiet(b.LeaderEpoch(), b.BaseOffset())
			}
		},
	}
	switch {
	case powerCut:
		p.CheckFrom = l.o.RecoveryPoint
	case l.o.CleanShutdown:
		p.CheckFrom, p.Progress = math.MaxInt64, nil
	}
	return p
}

// drop removes the segments from i on, the newest first, so that a crash leaves no hole.
func (r *recovery) drop(from int) error {
	l := r.l
	l.dirty = true
	for i := len(r.files) - 1; i >= from; i-- {
		s := segment.Open(l.env, r.files[i], math.MaxInt64, true)
		if err := l.retireDurably(s); err != nil {
			return err
		}
	}
	return nil
}

// loadProducers rebuilds the producers from the newest snapshot and the batches behind it. A snapshot
// keeps only the last batch of each producer, but a client that retries may send up to five again; so
// after an unclean shutdown the replay starts some way before the snapshot, to have them all.
func (l *Log) loadProducers(clean bool) error {
	segs := l.view.Load().segs
	first, end := segs[0].Base, l.ends.Written
	now, expiration := l.o.Clock.NowMs(), l.cfg.Load().ProducerIDExpirationMs
	from, err := l.producers.Load(l.o.FS, l.o.Dir, l.snapshots.offsets, first-1, end, now, expiration)
	if err != nil {
		return err
	}
	if n := len(l.snapshots.offsets); n > 0 && l.snapshots.offsets[n-1] > end {
		// One that comes back after a power cut would judge other records.
		if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
			return err
		}
	}
	infos, err := l.o.FS.ReadDir(l.o.Dir)
	if err != nil {
		return err
	}
	l.snapshots.offsets = producer.SnapshotsIn(infos)
	if !clean {
		back, err := l.offsetBack(l.snapshotBytes)
		if err != nil {
			return err
		}
		from = min(from, back)
	}
	return l.replay(max(from, first), segs)
}

// offsetBack is the offset of a batch that starts at least so many bytes before the log end, or the first.
func (l *Log) offsetBack(bytes int64) (int64, error) {
	segs := l.view.Load().segs
	for i := len(segs) - 1; i >= 0; i-- {
		if size := segs[i].SizeBytes(); size >= bytes {
			return segs[i].OffsetAt(size - bytes)
		}
		bytes -= segs[i].SizeBytes()
	}
	return segs[0].Base, nil
}

// replay applies the batches from offset on. When they were appended, the file's time tells, not the records'.
func (l *Log) replay(from int64, segs []*segment.Segment) error {
	const commitEvery = 1024
	n := 0
	for _, s := range segs {
		if s.End() <= from || s.SizeBytes() == 0 {
			continue
		}
		in, err := l.o.FS.Stat(s.Path())
		if err != nil {
			return err
		}
		err = s.Scan(from, func(b batch.Batch) error {
			l.producers.Apply(producerBatch(b, in.ModTimeMs))
			if n++; n%commitEvery == 0 {
				l.producers.Commit()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	l.producers.Commit()
	return nil
}

// reloadProducers is for a truncation: the snapshots beyond the end are gone already. mu is held.
func (l *Log) reloadProducers() error {
	l.producers.Clear()
	l.snapshots.grown = 0
	return l.loadProducers(false)
}
