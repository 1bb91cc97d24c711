package store

import (
	"math"
	"testing"
	"time"

	"platter/engine/checkpoint"
	"platter/engine/commitlog"
)

func configure(l *commitlog.Log, change func(*commitlog.Config)) {
	c := l.Config()
	change(&c)
	l.SetConfig(c)
}

// TestFlushMs: at most flush.ms after a record was written it is synced, and survives a power cut.
func TestFlushMs(t *testing.T) {
	r := newRig(t).open()
	configure(r.create("soon-0", 1), func(c *commitlog.Config) { c.FlushMs = 500 })
	r.create("never-0", 1)
	r.s.FlushDue(r.clock.NowMs())
	r.append("soon-0", 3)
	r.append("never-0", 3)
	r.clock.Advance(400 * time.Millisecond)
	if next := r.s.FlushDue(r.clock.NowMs()); next != r.clock.NowMs()+100 {
		t.Errorf("the next flush is due in %d ms", next-r.clock.NowMs())
	}
	if e := r.s.Get(tp("soon-0")).Ends(); e.Durable != 0 {
		t.Errorf("synced early: %+v", e)
	}
	r.clock.Advance(100 * time.Millisecond)
	r.s.FlushDue(r.clock.NowMs())
	r.append("soon-0", 1)
	r.crash(3)
	if e := r.s.Get(tp("soon-0")).Ends(); e.Written < 3 {
		t.Errorf("a record is lost that flush.ms had synced: %+v", e)
	}
	if l := r.s.Get(tp("never-0")); l != nil && l.Ends().Durable != 0 {
		t.Errorf("synced without being asked: %+v", l.Ends())
	}
}

// TestBackgroundLoops lets the loops run on the virtual clock: flush.ms, retention, checkpoints, removal, each
// in its time.
func TestBackgroundLoops(t *testing.T) {
	r := newRig(t)
	r.c.FlushCheckMs = math.MaxInt64
	r.c.CheckpointMs, r.c.HighWatermarkMs, r.c.RetentionCheckMs = 60_000, 5_000, 300_000
	r.open()
	defer r.close()
	l := r.create("a-0", 1)
	configure(l, func(c *commitlog.Config) { c.FlushMs, c.RetentionMs, c.SegmentMs = 1000, 600_000, 1000 })
	r.append("a-0", 5)
	r.mark("a-0", 5)
	start := r.clock.NowMs()
	at := func() int64 { return (r.clock.NowMs() - start) / 1000 }
	r.until("flush.ms", func() bool { return l.Ends().Durable == 5 })
	if s := at(); s > 3 {
		t.Errorf("flush.ms = 1000 took %d s", s)
	}
	r.until("the high watermark's checkpoint", func() bool { return r.read("data/"+checkpoint.HighWatermarkFile) == "0\n1\na 0 5\n" })
	r.until("the recovery point's", func() bool { return r.read("data/"+checkpoint.RecoveryPointFile) == "0\n1\na 0 5\n" })
	r.until("retention", func() bool { return l.Ends().Start == 5 })
	if s := at(); s < 600 || s > 1300 {
		t.Errorf("retention.ms = 10 min took %d s", s)
	}
	r.create("gone-0", 1)
	if err := r.s.Delete(tp("gone-0")); err != nil {
		t.Fatal(err)
	}
	r.until("the removal of a deleted log", func() bool {
		infos, err := r.disk.ReadDir("data")
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range infos {
			if _, kind := parseDirName(in.Name); kind == dirDeleted {
				return false
			}
		}
		return true
	})
}

func (r *rig) mark(name string, offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks[tp(name)] = offset
}

// until lets time pass, from one timer to the next, until done.
func (r *rig) until(what string, done func() bool) {
	r.t.Helper()
	const loops = 4 // that always have a timer, but while they work; the removal has one when something waits
	for range 5000 {
		for deadline := time.Now().Add(60 * time.Second); r.clock.Waiting() < loops; time.Sleep(10 * time.Microsecond) {
			if time.Now().After(deadline) {
				r.t.Fatalf("%s: a loop does not come back", what)
			}
		}
		if done() {
			return
		}
		next, _ := r.clock.Next()
		r.clock.Advance(next.Sub(r.clock.Now()))
	}
	r.t.Fatalf("%s never happened", what)
}

// TestRetentionStaysBelowTheHighWatermark: what is not replicated is not removed, nor anything of a log that nobody
// leads or follows yet.
func TestRetentionStaysBelowTheHighWatermark(t *testing.T) {
	r := newRig(t).open()
	l := r.create("a-0", 1)
	configure(l, func(c *commitlog.Config) { c.RetentionMs = 1000 })
	for range 3 {
		r.append("a-0", 2)
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
	}
	r.clock.Advance(time.Hour)
	if n := r.s.Retain(r.clock.NowMs()); n != 0 || l.Ends().Start != 0 {
		t.Errorf("%d segments of a log without a replica went", n)
	}
	r.mark("a-0", 3)
	if r.s.Retain(r.clock.NowMs()); l.Ends().Start != 2 {
		t.Errorf("starts at %d, high watermark 3", l.Ends().Start)
	}
	r.mark("a-0", 6)
	if r.s.Retain(r.clock.NowMs()); l.Ends().Start != 6 {
		t.Errorf("starts at %d, high watermark 6", l.Ends().Start)
	}
}

func TestOffsetFileLowersWhatARoundHasGathered(t *testing.T) {
	r := newRig(t)
	f := &offsetFile{fs: r.disk, path: "points"}
	if _, err := f.load(); err != nil {
		t.Fatal(err)
	}
	a, b := TP{"a", 0}, TP{"b", 0}
	all := func() checkpoint.Offsets {
		return checkpoint.Offsets{checkpoint.Key(a): 10, checkpoint.Key(b): 20}
	}
	if err := f.write(all); err != nil {
		t.Fatal(err)
	}
	err := f.write(func() checkpoint.Offsets {
		o := all()
		if err := f.lower(4, a); err != nil { // while the round gathers
			t.Fatal(err)
		}
		if got := r.read("points"); got != "0\n2\na 0 4\nb 0 20\n" {
			t.Errorf("lower returned before it was on disk: %q", got)
		}
		return o
	})
	if got := r.read("points"); err != nil || got != "0\n2\na 0 4\nb 0 20\n" {
		t.Errorf("%q, %v", got, err)
	}
	count := r.disk.Count()
	if err := f.lower(4, a); err != nil || r.disk.Count() != count {
		t.Errorf("lowering to what is there: %v, %d operations", err, r.disk.Count()-count)
	}
	if err := f.lower(0, a, b); err != nil || r.read("points") != "0\n0\n" {
		t.Errorf("%q, %v", r.read("points"), err)
	}
}
