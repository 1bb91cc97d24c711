package commitlog

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"platter/engine/batch"
	"platter/engine/segment"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/handles"
	"platter/io/memdisk"
)

// The crash simulation: a log over the in-memory disk goes through seeded operations, is killed or loses
// power at an I/O, recovers, and is compared with a model, over and over. A failure prints its seed:
//
//	go test ./engine/commitlog -run TestSim -sim.seed 4711 -v
//	PLATTER_SIM_SEEDS=100000 go test ./engine/commitlog -run TestSim
var simSeed = flag.Int64("sim.seed", -1, "run this one seed of the crash simulation, and print its trace")

const simSeedsDefault = 2000

func simSeeds(t *testing.T) (from, to uint64) {
	if *simSeed >= 0 {
		return uint64(*simSeed), uint64(*simSeed) + 1
	}
	if s := os.Getenv("PLATTER_SIM_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			t.Fatalf("PLATTER_SIM_SEEDS=%q: %v", s, err)
		}
		return 0, n
	}
	if testing.Short() {
		return 0, simSeedsDefault / 10
	}
	return 0, simSeedsDefault
}

// simClock is virtual time.
type simClock struct {
	ms     int64
	timers []simTimer
}

type simTimer struct {
	at int64
	f  func()
}

func (c *simClock) Now() time.Time                       { return time.UnixMilli(c.ms) }
func (c *simClock) NowMs() int64                         { return c.ms }
func (c *simClock) After(time.Duration) <-chan time.Time { return nil }
func (c *simClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.timers = append(c.timers, simTimer{c.ms + d.Milliseconds(), f})
	return func() bool { return false }
}

// advance moves time and runs what is due.
func (c *simClock) advance(ms int64) {
	c.ms += ms
	due := c.timers
	c.timers = nil
	for _, t := range due {
		if t.at > c.ms {
			c.timers = append(c.timers, t)
			continue
		}
		t.f()
	}
}

// sim is one run.
type sim struct {
	rng     *rand.Rand
	fs      *memdisk.FS
	clock   *simClock
	cfg     Config
	log     *Log
	m       *simModel
	planted planted
	trace   []string
	jobs    []func()

	recoveryPoint, startOffset int64 // the owner's checkpoints
	snapshotBytes              int64
	leaderEpoch                int32
	sequences                  map[int64]*simProducer
	sameBoot, clean            bool
	broken                     error // found inside of a callback
}

type simProducer struct {
	epoch int16
	next  int32
	lost  bool // its records are trimmed, and a snapshot that knew it may be gone
}

func newSim(seed uint64, plant planted) *sim {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	s := &sim{
		rng: rng, clock: &simClock{ms: 1_000_000}, m: newSimModel(), planted: plant,
		sequences: map[int64]*simProducer{}, clean: true, sameBoot: true,
	}
	s.fs = memdisk.New(memdisk.Options{Clock: s.clock})
	if err := errors.Join(s.fs.MkdirAll("/d"), s.fs.SyncDir("/")); err != nil {
		panic(err)
	}
	c := DefaultConfig()
	pick := func(from ...int64) int64 { return from[rng.IntN(len(from))] }
	c.SegmentBytes = pick(700, 1500, 4000, 20000)
	c.IndexIntervalBytes = pick(0, 200, 1000, 4096)
	c.SegmentIndexBytes = pick(64, 10<<20)
	c.SegmentMs = pick(50, 1000, 1<<40)
	c.SegmentJitterMs = pick(0, 20)
	c.RetentionBytes = pick(-1, 3000, 0)
	c.RetentionMs = pick(-1, 500, 10000)
	c.FlushMessages = pick(math.MaxInt64, 1, 1, 7)
	c.FileDeleteDelayMs = pick(0, 100)
	c.Compacted = rng.IntN(5) == 0
	c.LogAppendTime = rng.IntN(5) == 0
	c.MaxMessageBytes = 600
	s.cfg = c
	s.snapshotBytes = pick(300, 2000, 8<<20)
	return s
}

func (s *sim) logf(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%6d ", s.fs.Count())+fmt.Sprintf(format, args...))
}

func (s *sim) options() Options {
	return Options{
		FS: s.fs, Handles: handles.New(s.fs, 12), Clock: s.clock, Dir: "/d/t-0", Config: s.cfg,
		RecoveryPoint: s.recoveryPoint, LogStartOffset: s.startOffset,
		CleanShutdown: s.clean, SameBoot: s.sameBoot,
		LowerRecoveryPoint: func(o int64) error { s.recoveryPoint = min(s.recoveryPoint, o); return nil },
		Background:         func(f func()) { s.jobs = append(s.jobs, f) },
		OnIOError:          func(error) {},
		Logf:               func(f string, a ...any) { s.logf("  log: "+f, a...) },
		snapshotBytes:      s.snapshotBytes, planted: s.planted,
	}
}

var errSimCrash = errors.New("the crash point was reached")

// run goes through several lives of the log. crashAt, when not 0, is the only crash point, counted from the
// first operation; else there are random ones.
func (s *sim) run(lives, steps int, crashAt int64, powerCut bool) error {
	if crashAt > 0 {
		s.fs.CrashAt(crashAt, s.rng.Uint64())
	}
	for life := range lives {
		if crashAt == 0 && s.rng.IntN(4) > 0 {
			s.fs.CrashAt(s.fs.Count()+1+s.rng.Int64N(120), s.rng.Uint64())
		}
		err := s.live(steps)
		if err == nil {
			err = s.broken
		}
		if err != nil && !errors.Is(err, errSimCrash) {
			return err
		}
		if crashAt == 0 {
			powerCut = s.rng.IntN(2) == 0
		}
		s.die(powerCut || !s.sameBoot)
		_ = life
	}
	s.fs.CrashAt(0, 0)
	if err := s.open(); err != nil {
		return err
	}
	return s.verify()
}

// die ends a life.
func (s *sim) die(powerCut bool) {
	s.jobs, s.clock.timers = nil, nil
	if s.log != nil {
		closed := error(ErrClosed)
		s.log.failed.CompareAndSwap(nil, &closed) // its goroutines, if any, are dead
	}
	if powerCut {
		s.logf("POWER CUT")
		s.fs.Crash(s.rng.Uint64())
		s.sameBoot = false
		return
	}
	s.logf("KILLED")
	s.fs.Kill()
}

// open recovers the log; the model takes over what it finds.
func (s *sim) open() error {
	powerCut := !s.sameBoot && !s.clean
	s.logf("open: clean %v, same boot %v, recovery point %d, start %d", s.clean, s.sameBoot, s.recoveryPoint, s.startOffset)
	o, wasClean := s.options(), s.clean
	s.clean = false // the owner removes its mark first
	l, err := Open(context.Background(), o)
	if err != nil {
		return s.outcome(err)
	}
	s.log = l
	s.logf("  opened: %+v in %d segments", l.Ends(), l.SegmentCount())
	s.sameBoot = true
	forgetful := powerCut || s.m.lowEnd >= 0 || s.m.emptied >= 0 // snapshots may be gone
	if err := s.m.adopt(l, powerCut, o.LogStartOffset); err != nil {
		return s.outcome(fmt.Errorf("after recovery: %w", err))
	}
	s.startOffset = min(s.startOffset, s.m.start)
	if err := s.settled(); err != nil {
		return err
	}
	return s.checkProducers(wasClean, forgetful)
}

// outcome sorts the errors of a disk that was told to fail from others.
func (s *sim) outcome(err error) error {
	if err == nil {
		return nil
	}
	if s.fs.Crashed() {
		return errSimCrash
	}
	return err
}

// settled checks what must hold between any two operations.
func (s *sim) settled() error {
	if s.fs.Crashed() {
		return errSimCrash
	}
	e := s.log.Ends()
	if e.Start != s.m.start || e.Written != s.m.end || e.Durable > e.Written {
		return fmt.Errorf("ends are %+v, want start %d and end %d", e, s.m.start, s.m.end)
	}
	s.m.promised = max(s.m.promised, e.Durable)
	s.m.gathered = min(s.m.gathered, e.Written-e.Durable)
	for _, en := range s.log.epochs.Entries() {
		if en.StartOffset > e.Written {
			return fmt.Errorf("leader epoch %v starts above the end %d", en, e.Written)
		}
	}
	for _, b := range s.m.visible() {
		if got := s.log.epochs.At(max(b.base, e.Start)); got != b.leader {
			return fmt.Errorf("the batch at %d is of leader epoch %d, the history says %d: %v", b.base, b.leader, got, s.log.epochs.Entries())
		}
	}
	return nil
}

// verify is the dear check: look-ups, indexes.
func (s *sim) verify() error {
	if err := s.m.matches(s.log); err != nil {
		return s.outcome(err)
	}
	ts := s.clock.ms - s.rng.Int64N(400)
	if err := s.m.lookups(s.log, ts); err != nil {
		return s.outcome(err)
	}
	for range 5 {
		if s.m.end == s.m.start {
			break
		}
		offset, most := s.m.start+s.rng.Int64N(s.m.end-s.m.start), s.rng.Int64N(2000)
		limit := offset + s.rng.Int64N(s.m.end-offset+1)
		if err := s.readOne(offset, most, limit, s.rng.IntN(2) == 0); err != nil {
			return s.outcome(err)
		}
	}
	return s.outcome(simCheckIndexes(s.log))
}

// readOne compares one Read with the model.
func (s *sim) readOne(offset, most, limit int64, atLeastOne bool) error {
	var want []byte
	next, nextHigh := offset, s.m.end // a gap, as compaction leaves it, may be passed over or not
	for _, b := range s.m.visible() {
		if b.last < offset {
			continue
		}
		if b.last >= limit || int64(len(want)+len(b.bytes)) > most && !(atLeastOne && len(want) == 0) {
			nextHigh = b.base
			break
		}
		want, next = append(want, b.bytes...), b.last+1
	}
	rd, err := s.log.Read(offset, most, limit, atLeastOne)
	if err != nil {
		return err
	}
	defer rd.Release()
	var got []byte
	for _, rg := range rd.Ranges {
		p := make([]byte, rg.Len)
		if _, err := rg.File.ReadAt(p, rg.Pos); err != nil {
			return err
		}
		got = append(got, p...)
	}
	// A Read may end early, with a segment.
	if !bytes.HasPrefix(want, got) || len(got) == 0 && len(want) > 0 ||
		len(got) == len(want) && (rd.NextOffset < next || rd.NextOffset > max(next, nextHigh)) {
		return fmt.Errorf("read of %d bytes at %d below %d gives %d bytes up to %d, want %d up to %d",
			most, offset, limit, len(got), rd.NextOffset, len(want), next)
	}
	return nil
}

// live is one life: open, operations, sometimes a close.
func (s *sim) live(steps int) error {
	if err := s.open(); err != nil {
		return err
	}
	for range steps {
		if err := s.step(); err != nil {
			return err
		}
		if err := s.settled(); err != nil {
			return err
		}
		if s.rng.IntN(8) == 0 {
			if err := s.verify(); err != nil {
				return err
			}
		}
	}
	if s.rng.IntN(3) == 0 {
		return s.close()
	}
	return nil
}

func (s *sim) close() error {
	clean := s.rng.IntN(4) > 0
	s.logf("close: clean %v", clean)
	if err := s.log.Close(clean); err != nil {
		return s.outcome(err)
	}
	if clean {
		s.m.promised = s.m.end
		s.recoveryPoint, s.startOffset, s.clean = s.m.end, s.m.start, true
		s.m.startLow = s.m.start
	}
	return nil
}

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

// batch makes a batch for the model and for the log.
func (s *sim) batch(change func(*batch.Builder)) batch.Batch {
	bl := batch.NewBuilder()
	if s.rng.IntN(3) == 0 {
		bl.Codec = batch.Codec(s.rng.IntN(5))
	}
	if change != nil {
		change(bl)
	}
	for range 1 + s.rng.IntN(4) {
		value := make([]byte, s.rng.IntN(100))
		for i := range value {
			value[i] = byte(s.rng.Uint32())
		}
		bl.Add(s.clock.ms-s.rng.Int64N(200), []byte("k"), value)
	}
	b, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return b
}

// idempotent sets a producer's next sequence.
func (s *sim) idempotent(bl *batch.Builder) {
	id := int64(s.rng.IntN(3))
	p := s.sequences[id]
	if p == nil {
		p = &simProducer{}
		s.sequences[id] = p
	}
	if s.rng.IntN(20) == 0 {
		p.epoch++
		p.next = 0
	}
	bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = id, p.epoch, p.next
}

func simBatchOf(b batch.Batch) simBatch {
	sb := simBatch{
		base: b.BaseOffset(), last: b.LastOffset(), bytes: bytes.Clone(b), producer: b.ProducerID(),
		epoch: b.ProducerEpoch(), sequence: b.BaseSequence(), leader: b.LeaderEpoch(),
	}
	_ = batch.Walk(b, 1<<20, func(r *batch.Record) error {
		sb.times = append(sb.times, b.TimestampOf(r))
		return nil
	})
	return sb
}

// enqueue hands appends to the log as one group, and takes the outcomes into the model.
func (s *sim) enqueue(as []*Append) []Appended {
	results := make([]Appended, len(as))
	for i, a := range as {
		a.LeaderEpoch = s.leaderEpoch
		a.Done = func(r Appended) {
			results[i] = r
			e := s.log.Ends()
			if r.Err == nil && !r.Duplicate {
				s.m.gathered += r.LastOffset - r.BaseOffset + 1
			}
			s.m.gathered = min(s.m.gathered, e.Written-e.Durable)
			if r.Err == nil && s.m.gathered >= s.cfg.FlushMessages && !s.fs.Crashed() {
				s.broken = fmt.Errorf("acknowledged up to %d with %d records not synced, flush.messages is %d: %+v",
					r.LastOffset, s.m.gathered, s.cfg.FlushMessages, e)
			}
		}
	}
	s.log.queue.mu.Lock()
	s.log.queue.busy = len(as) > 1
	s.log.queue.mu.Unlock()
	for _, a := range as {
		s.log.Enqueue(a)
	}
	if len(as) > 1 {
		s.log.drain()
	}
	crashed := s.fs.Crashed()
	for i, a := range as {
		r := results[i]
		s.logf("  %d batches: %+v", len(a.Batches), r)
		if r.Err == nil && r.Duplicate {
			continue
		}
		for _, b := range a.Batches {
			sb := simBatchOf(b)
			switch {
			case r.Err == nil:
				s.m.add(sb)
				s.advanceProducer(sb)
			case crashed && len(s.m.maybe) == 0 || crashed && s.m.maybe[len(s.m.maybe)-1].last < sb.base:
				if sb.base >= s.m.end {
					s.m.maybe = append(s.m.maybe, sb)
				}
			}
		}
	}
	return results
}

func (s *sim) advanceProducer(b simBatch) {
	if p := s.sequences[b.producer]; p != nil && p.epoch == b.epoch {
		p.next, p.lost = b.sequence+int32(b.last-b.base)+1, false
	}
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

// stepRetry sends the last batch of a producer again, or one out of order.
func (s *sim) stepRetry() error {
	for id := range int64(3) {
		w := s.m.producersOf()[id]
		p := s.sequences[id]
		if len(w) == 0 || p == nil || p.epoch != w[0].epoch || w[len(w)-1].base < s.log.view.Load().segs[0].Base {
			continue // the last: only a snapshot can know it, and may be lost
		}
		return s.retry(w[len(w)-1])
	}
	return nil
}

func (s *sim) retry(want simBatch) error {
	r := s.enqueue([]*Append{{Batches: []batch.Batch{s.again(want)}}})[0]
	if s.fs.Crashed() {
		return errSimCrash
	}
	if r.Err != nil || !r.Duplicate || r.BaseOffset != want.base || r.LastOffset != want.last {
		return fmt.Errorf("a retry of producer %d's batch at %d gives %+v", want.producer, want.base, r)
	}
	return nil
}

// again makes the batch that a client would send again.
func (s *sim) again(b simBatch) batch.Batch {
	bl := batch.NewBuilder()
	bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = b.producer, b.epoch, b.sequence
	for range b.last - b.base + 1 {
		bl.Add(s.clock.ms, []byte("k"), nil)
	}
	out, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return out
}

// checkProducers sends again what is in each producer's window after a recovery, and something out of order.
func (s *sim) checkProducers(clean, forgetful bool) error {
	windows := s.m.producersOf()
	for id, w := range windows {
		p, last := s.sequences[id], w[len(w)-1]
		trimmed := last.base < s.log.view.Load().segs[0].Base
		*p = simProducer{
			epoch: last.epoch, next: last.sequence + int32(last.last-last.base) + 1,
			lost: trimmed && (p.lost || forgetful),
		}
	}
	for id := range int64(3) {
		w, p := windows[id], s.sequences[id]
		if len(w) == 0 {
			continue
		}
		last := w[len(w)-1]
		if p.lost {
			continue
		}
		if clean {
			w = w[len(w)-1:] // a snapshot keeps one
		}
		if s.snapshotBytes < 8<<20 {
			w = w[len(w)-1:]
		}
		for i, b := range w {
			if b.base < s.log.view.Load().segs[0].Base && i < len(w)-1 {
				continue // a snapshot knows the last one
			}
			if err := s.retry(b); err != nil {
				return fmt.Errorf("after recovery: %w", err)
			}
		}
		gap := last
		gap.sequence = p.next + 1
		r := s.enqueue([]*Append{{Batches: []batch.Batch{s.again(gap)}}})[0]
		if s.fs.Crashed() {
			return errSimCrash
		}
		if !errors.Is(r.Err, ErrOutOfOrderSequence) {
			return fmt.Errorf("after recovery: a gap in producer %d's sequence gives %+v", id, r)
		}
	}
	return nil
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

var _ clock.Clock = (*simClock)(nil)
