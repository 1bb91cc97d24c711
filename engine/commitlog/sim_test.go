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
	"testing"

	"platter/io/crashdisk"
	"platter/io/handles"
	"platter/io/memdisk"
)

// The crash simulation: a log over the in-memory disk goes through seeded operations, is killed or loses
// power at an I/O, recovers, and is compared with a model, over and over. A failure prints its seed:
//
//	go test ./engine/commitlog -run TestSim -sim.seed 4711 -v
//	PLATTER_SIM_SEEDS=100000 go test ./engine/commitlog -run TestSim -timeout 0    (or a range: 100000-200000)
var simSeed = flag.Int64("sim.seed", -1, "run this one seed of the crash simulation, and print its trace")

const simSeedsDefault = 2000

func simSeeds(t *testing.T) (from, to uint64) {
	if *simSeed >= 0 {
		return uint64(*simSeed), uint64(*simSeed) + 1
	}
	if s := os.Getenv("PLATTER_SIM_SEEDS"); s != "" {
		if _, err := fmt.Sscanf(s, "%d-%d", &from, &to); err == nil {
			return from, to
		}
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			t.Fatalf("PLATTER_SIM_SEEDS=%q, want a number or a range: %v", s, err)
		}
		return 0, n
	}
	if testing.Short() {
		return 0, simSeedsDefault / 10
	}
	return 0, simSeedsDefault
}

// sim is one run.
type sim struct {
	rng     *rand.Rand
	fs      crashdisk.Disk
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
	powerCut                   bool  // since the model last took over what was recovered
	broken                     error // found inside of a callback
}

type simProducer struct {
	epoch int16
	next  int32
	lost  bool // its records are trimmed, and a snapshot that knew it may be gone
}

func newSim(seed uint64, plant planted) *sim {
	return newSimOn(seed, plant, func(m *memdisk.FS) crashdisk.Disk { return m })
}

// newSimOn is newSim over what disk makes of the model.
func newSimOn(seed uint64, plant planted, disk func(*memdisk.FS) crashdisk.Disk) *sim {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	s := &sim{
		rng: rng, clock: &simClock{ms: 1_000_000}, m: newSimModel(), planted: plant,
		sequences: map[int64]*simProducer{}, clean: true, sameBoot: true,
	}
	s.fs = disk(memdisk.New(memdisk.Options{Clock: s.clock}))
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
	s.powerCut = s.powerCut || !s.sameBoot && !s.clean
	powerCut := s.powerCut
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
	s.powerCut = false
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
