package commitlog

import (
	"errors"
	"fmt"
	"testing"

	"platter/engine/batch"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/faultdisk"
	"platter/io/handles"
	"platter/io/memdisk"
)

// TestTruncateOnAFullDisk: wherever a full disk interrupts a truncation, the log goes on from there once there is room,
// without a new start, and a new start finds the same.
func TestTruncateOnAFullDisk(t *testing.T) {
	for name, truncate := range map[string]func(*Log) error{
		"to":    func(l *Log) error { return l.TruncateTo(3) },
		"fully": func(l *Log) error { return l.TruncateFully(50) },
	} {
		t.Run(name, func(t *testing.T) {
			interrupted := 0
			for n := range 200 {
				fired, hit := truncateFull(t, n, truncate)
				if hit {
					interrupted++
				}
				if !fired {
					if interrupted < 3 {
						t.Errorf("interrupted at %d points", interrupted)
					}
					return
				}
			}
			t.Error("it never ends")
		})
	}
}

// truncateFull has the disk full at the nth operation that takes room.
func truncateFull(t *testing.T, n int, truncate func(*Log) error) (fired, hit bool) {
	t.Helper()
	fs := faultdisk.New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	if err := errors.Join(fs.MkdirAll("/d"), fs.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.SegmentBytes = int64(len(testBatch(t))) // one batch each
	point := int64(0)
	lower := func(o int64) error {
		f, err := fs.Open("/d/point", disk.Create)
		if err == nil {
			err = f.Close()
			point = min(point, o)
		}
		return err
	}
	o := Options{FS: fs, Handles: handles.New(fs, 16), Clock: clock.Real{}, Dir: "/d/t-0", Topic: "t", Config: cfg,
		OnIOError: func(err error) { t.Errorf("offline: %v", err) }, LowerRecoveryPoint: lower}
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	add := func(epoch int32) error {
		done := make(chan error, 1)
		l.Enqueue(&Append{Batches: []batch.Batch{testBatch(t)}, Origin: Client, LeaderEpoch: epoch, Done: func(a Appended) { done <- a.Err }})
		return <-done
	}
	for i := range int32(6) {
		if err := errors.Join(l.AssignEpoch(i), add(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	point = l.RecoveryPoint()

	const room = "create,write,rename,syncdir,sync,preallocate"
	if err := fs.Script(fmt.Sprintf("%s * after %d: ENOSPC times 2", room, n)); err != nil {
		t.Fatal(err)
	}
	err = truncate(l)
	fired, hit = len(fs.Fired()) > 0, err != nil
	if hit && !errors.Is(err, disk.ErrFull) {
		t.Fatalf("point %d: %v", n, err)
	}
	if err := fs.Script(""); err != nil {
		t.Fatal(err)
	}
	if hit {
		// Whoever asked asks again; or, where that is no more to be done, whoever writes next finishes it.
		if n%2 == 0 || l.Ends().Written == 6 {
			if err := truncate(l); err != nil {
				t.Fatalf("point %d, again: %v", n, err)
			}
		}
	}
	if err := errors.Join(l.AssignEpoch(20), add(20), l.Sync()); err != nil {
		t.Fatalf("point %d, afterwards: %v", n, err)
	}
	want := l.Ends()
	if want.Written != 4 && want.Written != 51 {
		t.Fatalf("point %d: %+v", n, want)
	}
	last := want.Written - 1
	if e := l.EpochAt(last); e != 20 {
		t.Fatalf("point %d: epoch %d at %d", n, e, last)
	}
	if err := l.Close(true); err != nil {
		t.Fatal(err)
	}
	o.Handles, o.CleanShutdown, o.RecoveryPoint, o.LogStartOffset = handles.New(fs, 16), n%3 == 0, point, want.Start
	if l, err = Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer l.Close(true)
	if got := l.Ends(); got.Start != want.Start || got.Written != want.Written || l.EpochAt(last) != 20 {
		t.Fatalf("point %d: a new start finds %+v, epoch %d; it was %+v", n, got, l.EpochAt(last), want)
	}
	return fired, hit
}
