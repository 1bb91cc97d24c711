package commitlog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"platter/engine/batch"
	"platter/io/disk"
	"platter/io/handles"
	"platter/io/memdisk"
)

// rig is one partition on an in-memory disk.
type rig struct {
	t     testing.TB
	fs    *memdisk.FS
	clock *simClock
	cfg   Config
	log   *Log
	rp    int64 // what the owner has checkpointed
	logs  []string
	jobs  []func()
	ioErr chan error
}

func newRig(t testing.TB, change func(*Config)) *rig {
	c := &simClock{ms: 5_000_000}
	r := &rig{t: t, fs: memdisk.New(memdisk.Options{Clock: c}), clock: c, cfg: DefaultConfig(), ioErr: make(chan error, 8)}
	if change != nil {
		change(&r.cfg)
	}
	if err := errors.Join(r.fs.MkdirAll("/data"), r.fs.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	r.open(func(o *Options) { o.CleanShutdown = true })
	return r
}

func (r *rig) options() Options {
	return Options{
		FS: r.fs, Handles: handles.New(r.fs, 16), Clock: r.clock, Dir: "/data/t-0", Topic: "t", Config: r.cfg,
		RecoveryPoint:      r.rp,
		OnIOError:          func(err error) { r.ioErr <- err },
		LowerRecoveryPoint: func(o int64) error { r.rp = min(r.rp, o); return nil },
		Background:         func(f func()) { r.jobs = append(r.jobs, f) },
		Logf:               func(f string, a ...any) { r.logs = append(r.logs, fmt.Sprintf(f, a...)) },
	}
}

func (r *rig) open(change func(*Options)) {
	r.t.Helper()
	o := r.options()
	if change != nil {
		change(&o)
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		r.t.Fatalf("open: %v", err)
	}
	r.log = l
}

// reopen after the death of the process.
func (r *rig) kill() {
	r.t.Helper()
	r.fs.Kill()
	r.jobs = nil
	r.open(func(o *Options) { o.SameBoot = true })
}

// crash cuts the power and opens again.
func (r *rig) crash(seed uint64) {
	r.t.Helper()
	r.fs.Crash(seed)
	r.jobs = nil
	r.open(nil)
}

func (r *rig) runJobs() {
	for len(r.jobs) > 0 {
		f := r.jobs[0]
		r.jobs = r.jobs[1:]
		f()
	}
}

// records builds a batch of n records whose values are size bytes long.
func records(n, size int, change func(*batch.Builder)) batch.Batch {
	bl := batch.NewBuilder()
	if change != nil {
		change(bl)
	}
	for i := range n {
		bl.Add(int64(1000+i), fmt.Appendf(nil, "k%d", i), make([]byte, size))
	}
	b, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return b
}

func (r *rig) append(bs ...batch.Batch) Appended {
	var out Appended
	done := 0
	r.log.Enqueue(&Append{Batches: bs, Done: func(a Appended) { out, done = a, done+1 }})
	if done != 1 {
		r.t.Fatalf("Done was called %d times", done)
	}
	return out
}

func (r *rig) mustAppend(bs ...batch.Batch) Appended {
	r.t.Helper()
	a := r.append(bs...)
	if a.Err != nil {
		r.t.Fatalf("append: %v", a.Err)
	}
	return a
}

// read gives the bytes of one Read.
func (r *rig) read(offset, maxBytes int64, atLeastOne bool) ([]byte, int64) {
	r.t.Helper()
	rd, err := r.log.Read(offset, maxBytes, r.log.Ends().Written, atLeastOne)
	if err != nil {
		r.t.Fatalf("read at %d: %v", offset, err)
	}
	defer rd.Release()
	return bytesOf(r.t, rd.Ranges), rd.NextOffset
}

func bytesOf(t testing.TB, ranges []disk.Range) []byte {
	t.Helper()
	var all []byte
	for _, rg := range ranges {
		p := make([]byte, rg.Len)
		if n, err := rg.File.ReadAt(p, rg.Pos); int64(n) != rg.Len {
			t.Fatalf("read %d bytes at %d: %d, %v", rg.Len, rg.Pos, n, err)
		}
		all = append(all, p...)
	}
	return all
}

// all reads the log from start to end, checking that the batches join.
func (r *rig) all() []batch.Batch {
	r.t.Helper()
	var out []batch.Batch
	e := r.log.Ends()
	for at := e.Start; at < e.Written; {
		p, next := r.read(at, 1<<20, true)
		bs, err := batch.Split(nil, p)
		if err != nil || len(bs) == 0 || next <= at {
			r.t.Fatalf("read at %d gives %d batches, next %d: %v", at, len(bs), next, err)
		}
		out = append(out, bs...)
		at = next
	}
	return out
}
