package commitlog

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"platter/engine/batch"
	"platter/io/clock"
	"platter/io/faultdisk"
	"platter/io/handles"
	"platter/io/memdisk"
)

// TestBacklog: what waits for a disk that hangs is bounded: beyond, appends wait to be queued, and are refused once it is
// known. When the disk answers, all that were let in are done.
func TestBacklog(t *testing.T) {
	fs := faultdisk.New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	var hangs atomic.Bool
	one := int64(len(testBatch(t)))
	backlog := &Backlog{BytesMax: 10 * one, Hangs: hangs.Load}
	if err := fs.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), Options{FS: fs, Handles: handles.New(fs, 16), Clock: clock.Real{}, Dir: "/d/t-0",
		Config: DefaultConfig(), Backlog: backlog})
	if err != nil {
		t.Fatal(err)
	}
	if err := fs.Script("write *.log: hang"); err != nil {
		t.Fatal(err)
	}
	var good, refused, others atomic.Int64
	var wg sync.WaitGroup
	const appends = 40
	for range appends {
		wg.Go(func() {
			done := make(chan error, 1)
			l.Enqueue(&Append{Batches: []batch.Batch{testBatch(t)}, Done: func(a Appended) { done <- a.Err }})
			switch err := <-done; {
			case err == nil:
				good.Add(1)
			case errors.Is(err, ErrHangs):
				refused.Add(1)
			default:
				others.Add(1)
			}
		})
	}
	wait := func(what string, is func() bool) {
		t.Helper()
		for limit := time.Now().Add(60 * time.Second); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("never happened: %s", what)
			}
		}
	}
	wait("the rest waits", func() bool { return backlog.waiting.Load() == appends-10 })
	if good.Load() != 0 || refused.Load() != 0 {
		t.Errorf("%d appended, %d refused before the disk is known to hang", good.Load(), refused.Load())
	}
	hangs.Store(true)
	wait("the rest is refused", func() bool { return refused.Load() == appends-10 })
	if err := fs.Script(""); err != nil {
		t.Fatal(err)
	}
	hangs.Store(false)
	wg.Wait()
	if good.Load() != 10 || others.Load() != 0 || backlog.bytes.Load() != 0 {
		t.Errorf("%d appended, %d failed otherwise, %d bytes are still held", good.Load(), others.Load(), backlog.bytes.Load())
	}
}

// TestBacklogLetsGoOn: who waits gets in when others are done, and one that is larger than the bound gets in alone.
func TestBacklogLetsGoOn(t *testing.T) {
	b := &Backlog{BytesMax: 10}
	if err := b.enter(100); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := b.enter(4); err != nil {
				t.Error(err)
			}
			if n := b.bytes.Load(); n > 10+50*4 {
				t.Errorf("%d bytes", n)
			}
			b.leave(4)
		})
	}
	b.leave(100)
	wg.Wait()
	if n := b.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

func testBatch(t *testing.T) batch.Batch {
	t.Helper()
	bl := batch.NewBuilder()
	bl.Add(1, nil, []byte("value"))
	b, err := bl.Build()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
