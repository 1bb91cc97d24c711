package commitlog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"platter/engine/batch"
	"platter/io/clock"
	"platter/io/handles"
	"platter/io/hddsim"
	"platter/io/memdisk"
)

// modelled is logs on one modelled disk, in virtual time.
type modelled struct {
	t     *testing.T
	fs    *hddsim.FS
	clock clock.Clock
	logs  []*Log
}

func newModelled(t *testing.T, c clock.Clock, logs int, flushMessages int64) *modelled {
	m := &hddsim.Machine{}
	drive := hddsim.NewQueue(m, hddsim.NewDrive(m, hddsim.HDD7200(), 1), hddsim.DefaultQueue())
	inner := memdisk.New(memdisk.Options{Clock: c})
	if err := inner.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	r := &modelled{t: t, clock: c, fs: hddsim.NewFS(inner, hddsim.NewVolume(m, drive, hddsim.DefaultVolume()), c)}
	cfg := DefaultConfig()
	cfg.FlushMessages = flushMessages
	for i := range logs {
		l, err := Open(context.Background(), Options{
			FS: r.fs, Handles: handles.New(r.fs, 64), Clock: c, Dir: fmt.Sprintf("/data/t-%d", i), Topic: "t", Config: cfg, CleanShutdown: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		r.logs = append(r.logs, l)
	}
	return r
}

// appendAll appends to all logs at once, from appenders goroutines each, one batch after the other, and tells how
// long it took.
func (r *modelled) appendAll(appenders, each, size int) time.Duration {
	start := r.clock.Now()
	var wg sync.WaitGroup
	for _, l := range r.logs {
		for range appenders {
			wg.Go(func() {
				for range each {
					done := make(chan Appended, 1)
					l.Enqueue(&Append{Batches: []batch.Batch{records(1, size, nil)}, Done: func(a Appended) { done <- a }})
					if a := <-done; a.Err != nil {
						r.t.Error(a.Err)
					}
				}
			})
		}
	}
	wg.Wait()
	return r.clock.Now().Sub(start)
}

// readAll reads every log through, one after the other, and gives the bytes and the time.
func (r *modelled) readAll() (bytes int64, took time.Duration) {
	start := r.clock.Now()
	for _, l := range r.logs {
		for at := l.Ends().Start; at < l.Ends().Written; {
			rd, err := l.Read(at, 1<<20, l.Ends().Written, true)
			if err != nil {
				r.t.Fatal(err)
			}
			bytes += int64(len(bytesOf(r.t, rd.Ranges)))
			at = rd.NextOffset
			rd.Release()
		}
	}
	return bytes, r.clock.Now().Sub(start)
}

func (r *modelled) close() {
	for _, l := range r.logs {
		if err := l.Close(true); err != nil {
			r.t.Error(err)
		}
	}
}

func (r *modelled) syncsCost() {
	const each = 40
	took := r.appendAll(3, each, 100)
	// A group of appends costs a sync: the data, the journal and its commit, each some way of the arm and part of a turn.
	groups := took / each
	r.t.Logf("%d logs, 3 appenders each, flush.messages=1: %v an append", len(r.logs), groups)
	if groups < 10*time.Millisecond || groups > 400*time.Millisecond {
		r.t.Errorf("an append that is synced takes %v", groups)
	}
	r.close()
}

func (r *modelled) coldReads() {
	took := r.appendAll(1, 100, 100<<10)
	if took > time.Second {
		r.t.Errorf("appends to memory took %v", took)
	}
	warm, warmTook := r.readAll()
	for _, l := range r.logs {
		if err := l.Sync(); err != nil {
			r.t.Fatal(err)
		}
	}
	r.fs.Do(func(v *hddsim.Volume) { v.DropCaches() })
	cold, coldTook := r.readAll()
	rate := float64(cold) / coldTook.Seconds() / 1e6
	r.t.Logf("%d MB: warm in %v, cold in %v (%.0f MB/s)", warm/1e6, warmTook, coldTook, rate)
	if warm != cold || warmTook > coldTook/4 || rate < 40 || rate > 151 {
		r.t.Errorf("%d bytes warm in %v, %d cold in %v", warm, warmTook, cold, coldTook)
	}
	r.close()
}

// TestModelledDisk runs the real log over a modelled disk: seconds of the disk's time pass in milliseconds.
func TestModelledDisk(t *testing.T) {
	for name, c := range map[string]struct {
		flush int64
		run   func(*modelled)
	}{"syncs": {1, (*modelled).syncsCost}, "cold reads": {1 << 40, (*modelled).coldReads}} {
		t.Run(name, func(t *testing.T) {
			lapse := hddsim.NewLapse(time.Unix(1_700_000_000, 0))
			lapse.Run(func() { c.run(newModelled(t, lapse, 8, c.flush)) })
		})
		t.Run(name+" in a bubble", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(newModelled(t, clock.Real{}, 8, c.flush)) })
		})
	}
}
