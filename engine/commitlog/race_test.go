package commitlog

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"platter/engine/batch"
	"platter/io/backend"
	"platter/io/clock"
	"platter/io/handles"
)

// Appenders, readers, a syncer, a trimmer and a roller at once, over real files: each appender's batches stand
// in the order of its calls, and every reader sees whole batches of rising offsets.
func TestManyAtOnce(t *testing.T) {
	fs, _, err := backend.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig()
	c.SegmentBytes, c.FlushMessages, c.FileDeleteDelayMs = 64<<10, 50, 0
	l, err := Open(context.Background(), Options{
		FS: fs, Handles: handles.New(fs, 64), Clock: clock.Real{}, Dir: filepath.Join(t.TempDir(), "t-0"), Config: c, CleanShutdown: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	const appenders, each = 8, 200
	var done atomic.Bool
	var work, rest sync.WaitGroup
	for p := range int64(appenders) {
		work.Go(func() { appendInOrder(t, l, p, each) })
	}
	for range 3 {
		rest.Go(func() { readForever(t, l, &done) })
	}
	rest.Go(func() {
		for !done.Load() {
			if err := l.Sync(); err != nil {
				t.Error(err)
			}
			e := l.Ends()
			if e.Durable > e.Written || e.Start > e.Written {
				t.Errorf("ends %+v", e)
			}
			if _, err := l.Retain(time.Now().UnixMilli(), e.Written); err != nil {
				t.Error(err)
			}
			if err := l.TrimTo(e.Written / 4); err != nil {
				t.Error(err)
			}
			if _, _, err := l.OffsetForTime(1000); err != nil {
				t.Error(err)
			}
			if _, _, err := l.MaxTimestamp(); err != nil {
				t.Error(err)
			}
		}
	})
	work.Wait()
	done.Store(true)
	rest.Wait()
	if e := l.Ends(); e.Written != appenders*each*2 {
		t.Fatalf("%d records, want %d", e.Written, appenders*each*2)
	}
	if bad, err := l.Verify(context.Background(), nil); err != nil || len(bad) > 0 {
		t.Fatalf("verify: %v, %v", bad, err)
	}
	if err := l.Close(true); err != nil {
		t.Fatal(err)
	}
}

// appendInOrder is one idempotent producer with five batches in flight.
func appendInOrder(t *testing.T, l *Log, producer int64, n int) {
	var wait sync.WaitGroup
	inFlight := make(chan struct{}, 5)
	last := int64(-1)
	for i := range n {
		b := records(2, 300, func(bl *batch.Builder) { bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = producer, 0, int32(2*i) })
		inFlight <- struct{}{}
		wait.Add(1)
		l.Enqueue(&Append{Batches: []batch.Batch{b}, Done: func(a Appended) {
			if a.Err != nil || a.Duplicate || a.BaseOffset <= last {
				t.Errorf("producer %d, batch %d: %+v behind %d", producer, i, a, last)
			}
			last = a.LastOffset
			<-inFlight
			wait.Done()
		}})
	}
	wait.Wait()
}

func readForever(t *testing.T, l *Log, done *atomic.Bool) {
	at := int64(0)
	for !done.Load() {
		e := l.Ends()
		rd, err := l.Read(at, 10_000, e.Written, true)
		if errors.Is(err, ErrOffsetOutOfRange) {
			at = max(at, l.Ends().Start)
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		for _, rg := range rd.Ranges {
			p := make([]byte, rg.Len)
			if n, err := rg.File.ReadAt(p, rg.Pos); int64(n) != rg.Len {
				t.Error(err)
			}
			bs, err := batch.Split(nil, p)
			if err != nil {
				t.Error(err)
			}
			for _, b := range bs {
				if batch.CheckCRC(b) != nil || b.LastOffset() < at {
					t.Errorf("batch at %d read at %d", b.BaseOffset(), at)
				}
				at = b.LastOffset() + 1
			}
		}
		if at != rd.NextOffset {
			t.Errorf("read up to %d, next is %d", at, rd.NextOffset)
		}
		rd.Release()
	}
}
