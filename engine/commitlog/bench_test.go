package commitlog

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"platter/engine/batch"
	"platter/io/backend"
	"platter/io/clock"
	"platter/io/handles"
)

func benchLog(b *testing.B, change func(*Config)) *Log {
	fs, _, err := backend.Select("auto")
	if err != nil {
		b.Fatal(err)
	}
	c := DefaultConfig()
	c.SegmentBytes = 256 << 20
	c.RetentionBytes = 256 << 20
	c.FileDeleteDelayMs = 0
	if change != nil {
		change(&c)
	}
	l, err := Open(context.Background(), Options{
		FS: fs, Handles: handles.New(fs, 64), Clock: clock.Real{}, Dir: filepath.Join(b.TempDir(), "t-0"), Config: c,
		CleanShutdown: true, Background: func(func()) {}, // no syncs: the page cache is measured
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Discard)
	return l
}

// BenchmarkAppend is one append after the other, on one goroutine: CRC and walk of the records included.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 1000 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			l := benchLog(b, nil)
			bt := records(1+size/1024, 1000, nil)
			b.SetBytes(int64(len(bt)))
			b.ReportAllocs()
			a := &Append{Batches: []batch.Batch{bt}, Done: func(r Appended) {
				if r.Err != nil {
					b.Fatal(r.Err)
				}
			}}
			n := 0
			for b.Loop() {
				l.Enqueue(a)
				if n += len(bt); n > 64<<20 {
					n = 0
					b.StopTimer()
					if _, err := l.Retain(0, l.Ends().Written); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkRead finds ranges at the tail, and anywhere in the log.
func BenchmarkRead(b *testing.B) {
	l := benchLog(b, nil)
	bt := records(4, 1000, nil)
	const n = 20_000
	for range n {
		l.Enqueue(&Append{Batches: []batch.Batch{bt}, Done: func(Appended) {}})
	}
	end := l.Ends().Written
	for name, at := range map[string]func(i int64) int64{
		"tail": func(i int64) int64 { return end - 4 - i%100 },
		"cold": func(i int64) int64 { return i * 7919 % (end - 1000) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := int64(0)
			for b.Loop() {
				i++
				r, err := l.Read(at(i), 64<<10, end, true)
				if err != nil || r.SizeBytes == 0 {
					b.Fatal(r, err)
				}
				r.Release()
			}
		})
	}
}
