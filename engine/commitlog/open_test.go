package commitlog

import (
	"context"
	"errors"
	"testing"

	"platter/engine/segment"
	"platter/io/disk"
)

// After a clean shutdown nothing is scanned: damage in the middle is not noticed, and costs no offset.
func TestCleanOpenScansNothing(t *testing.T) {
	r := newRig(t, nil)
	for range 200 {
		r.mustAppend(records(1, 500, nil))
	}
	if err := r.log.Close(true); err != nil {
		t.Fatal(err)
	}
	f, err := r.fs.Open("/data/t-0/"+segment.LogName(0), disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteV([][]byte{make([]byte, 600)}, 20_000); err != nil {
		t.Fatal(err)
	}
	r.rp = 200
	scanned := int64(0)
	r.open(func(o *Options) {
		o.CleanShutdown = true
		o.Progress = func(_, n int64) { scanned += n }
	})
	if e := r.log.Ends(); e.Written != 200 || scanned > 0 {
		t.Fatalf("ends %+v, %d bytes scanned", e, scanned)
	}
}

// The recovery point is lowered, on disk, before what it vouches for is cut.
func TestTruncationLowersTheRecoveryPointFirst(t *testing.T) {
	r := newRig(t, nil)
	for range 10 {
		r.mustAppend(records(1, 100, nil))
	}
	if err := r.log.Sync(); err != nil {
		t.Fatal(err)
	}
	r.rp = r.log.RecoveryPoint()
	lowered := false
	r.log.o.LowerRecoveryPoint = func(o int64) error {
		lowered = o == 4 && r.log.view.Load().segs[0].SizeBytes() > 4*100
		return nil
	}
	if err := r.log.TruncateTo(4); err != nil || !lowered || r.log.RecoveryPoint() != 4 {
		t.Fatalf("lowered %v, recovery point %d, %v", lowered, r.log.RecoveryPoint(), err)
	}
}

// A log that was closed cleanly is opened, and if nothing happens closed, without a single write.
func TestAnUntouchedLogCostsNoWrites(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentBytes = 5000 })
	for range 30 {
		r.mustAppend(records(2, 300, nil))
	}
	r.runJobs()
	if err := r.log.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := r.log.Close(true); err != nil {
		t.Fatal(err)
	}
	r.rp = 60
	for range 2 {
		before := r.fs.Count()
		r.open(func(o *Options) { o.CleanShutdown = true })
		if got := r.all(); len(got) != 30 {
			t.Fatalf("%d batches", len(got))
		}
		if a := r.log.Producers(); len(a) > 0 {
			t.Fatalf("producers %+v", a)
		}
		if err := r.log.Close(true); err != nil {
			t.Fatal(err)
		}
		if n := r.fs.Count() - before; n > 0 {
			t.Fatalf("%d writes", n)
		}
	}
	if len(r.logs) > 0 {
		t.Fatalf("something was wrong: %q", r.logs)
	}
}

// After a power cut all that will be read is told first, and in the end all of it was read, or dropped.
func TestProgressAddsUp(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentBytes = 5000 })
	for range 60 {
		r.mustAppend(records(2, 300, nil))
	}
	if err := r.log.Sync(); err != nil {
		t.Fatal(err)
	}
	size := r.log.SizeBytes()
	for _, torn := range []bool{false, true} {
		if torn {
			rot(t, r, 60, 70)
		}
		r.fs.Crash(1)
		toScan, scanned, first := int64(0), int64(0), int64(-1)
		r.open(func(o *Options) {
			o.Progress = func(more, n int64) {
				if toScan, scanned = toScan+more, scanned+n; n > 0 && first < 0 {
					first = toScan
				}
			}
		})
		if toScan != size || first != size {
			t.Fatalf("torn %v: %d bytes to scan, %d of them told first; the log has %d", torn, toScan, first, size)
		}
		if !torn && scanned != size || torn && (scanned >= size || r.log.Ends().Written != 60) {
			t.Fatalf("torn %v: %d of %d bytes scanned, ends %+v", torn, scanned, size, r.log.Ends())
		}
	}
}

func TestRecoveryCanBeStopped(t *testing.T) {
	r := newRig(t, nil)
	for range 50 {
		r.mustAppend(records(2, 20_000, nil))
	}
	if err := r.log.Sync(); err != nil {
		t.Fatal(err)
	}
	r.fs.Crash(1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, r.options()); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r.open(nil)
	if e := r.log.Ends(); e.Written != 100 {
		t.Fatalf("%+v", e)
	}
}
