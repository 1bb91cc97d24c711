package commitlog

import (
	"bytes"
	"testing"

	"platter/engine/batch"
)

func TestAppendAndReadBack(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentBytes = 4000 })
	var want [][]byte
	next := int64(0)
	for i := range 200 {
		b := records(1+i%5, 10*i%700, nil)
		a := r.mustAppend(b)
		if a.BaseOffset != next || a.LastOffset != next+int64(i%5) {
			t.Fatalf("append %d: offsets %d to %d, want base %d", i, a.BaseOffset, a.LastOffset, next)
		}
		next = a.LastOffset + 1
		want = append(want, bytes.Clone(b))
	}
	check := func(when string) {
		t.Helper()
		got := r.all()
		if len(got) != len(want) {
			t.Fatalf("%s: %d batches, want %d", when, len(got), len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("%s: batch %d differs", when, i)
			}
		}
	}
	check("after appends")
	if r.log.SegmentCount() < 10 {
		t.Fatalf("%d segments", r.log.SegmentCount())
	}
	r.kill()
	check("after a kill")
	r.runJobs()
	if err := r.log.Sync(); err != nil {
		t.Fatal(err)
	}
	r.crash(1)
	check("after a crash behind a sync")
	if err := r.log.Close(true); err != nil {
		t.Fatal(err)
	}
	r.crash(2)
	check("after a clean close")
	r.open(func(o *Options) { o.CleanShutdown = true })
	check("after a clean open")
	for i, b := range r.all() {
		for _, maxBytes := range []int64{1, 100, 1500, 5000, 100000} {
			p, _ := r.read(b.LastOffset(), maxBytes, true)
			if !bytes.HasPrefix(p, want[i]) || int64(len(p)) > max(maxBytes, int64(len(want[i]))) {
				t.Fatalf("read of %d bytes at batch %d gives %d bytes", maxBytes, i, len(p))
			}
			if _, err := batch.Split(nil, p); err != nil {
				t.Fatal(err)
			}
		}
	}
}
