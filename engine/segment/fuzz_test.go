package segment

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"platter/engine/batch"
)

// Whatever an index file holds, reading it gives entries or a typed error, in bounded memory.
func FuzzReadIndex(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}, int64(100))
	f.Add([]byte{}, int64(0))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1}, int64(1)<<62)
	f.Fuzz(func(t *testing.T, p []byte, base int64) {
		check := func(width int64, err error, n int64) {
			var corrupt *CorruptError
			if err != nil && !errors.As(err, &corrupt) {
				t.Fatalf("error %v", err)
			}
			if n > int64(len(p))/width {
				t.Fatalf("%d entries in %d bytes", n, len(p))
			}
		}
		n := int64(0)
		err := ReadOffsetIndex(bytes.NewReader(p), int64(len(p)), base, func(i int64, e OffsetEntry) error {
			n = i + 1
			return nil
		})
		check(8, err, n)
		n = 0
		err = ReadTimeIndex(bytes.NewReader(p), int64(len(p)), base, func(i int64, e TimeEntry) error {
			n = i + 1
			return nil
		})
		check(12, err, n)
	})
}

func FuzzScanner(f *testing.F) {
	good := append(bytes.Clone(batchAt(0, 3, 1000, 20)), batchAt(3, 2, 2000, 500)...)
	f.Add(good, true)
	f.Add(good[:len(good)-5], false)
	f.Add(append(bytes.Clone(good), make([]byte, 100)...), true)
	f.Fuzz(func(t *testing.T, p []byte, crc bool) {
		sc := NewScanner(bytes.NewReader(p), 0, int64(len(p)), ScanOptions{CRC: crc, Whole: crc})
		defer sc.Close()
		end := int64(0)
		for sc.Next() {
			if sc.Pos() != end || sc.SizeBytes() < batch.HeaderBytes || crc && batch.CheckCRC(sc.Batch()) != nil {
				t.Fatalf("batch at %d of %d bytes behind %d", sc.Pos(), sc.SizeBytes(), end)
			}
			end = sc.End()
		}
		var corrupt *CorruptError
		if err := sc.Err(); err != nil && !errors.As(err, &corrupt) || err == nil && end != int64(len(p)) {
			t.Fatalf("ends at %d of %d: %v", end, len(p), err)
		}
	})
}

// Any bytes as .log and indexes: recovery ends with a segment whose every offset can be read.
func FuzzRecover(f *testing.F) {
	var log []byte
	for i := range int64(8) {
		log = append(log, batchAt(7+2*i, 2, 1000+i, 30)...)
	}
	f.Add(log, []byte{0, 0, 0, 3, 0, 0, 0, 0x97}, []byte{}, int64(0), true)
	f.Add(log[:len(log)-7], []byte{}, []byte{0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 0, 0, 1}, int64(15), true)
	f.Add(append(bytes.Clone(log[:300]), log[310:]...), []byte("garbage"), []byte("more of it"), int64(100), false)
	f.Fuzz(func(t *testing.T, log, index, times []byte, sure int64, powerCut bool) {
		r := newRig(t)
		r.write("/d/"+LogName(7), -1, log)
		r.write("/d/"+IndexName(7), -1, index)
		r.write("/d/"+TimeIndexName(7), -1, times)
		files := Files{Base: 7, LogBytes: int64(len(log)), IndexBytes: int64(len(index)), TimeIndexBytes: int64(len(times))}
		sure = min(max(sure, 0), 1000)
		s, _, err := Recover(r.env, files, Pass{Sure: sure, CheckFrom: 0, PowerCut: powerCut, IntervalBytes: 100})
		if err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		for pass := range 2 {
			for o := s.Base; o < s.End() && o < s.Base+200; o++ {
				ref, err := s.Acquire()
				if err != nil {
					t.Fatal(err)
				}
				sp, err := s.Span(ref.File(), o, s.End(), 1, true)
				ref.Release()
				if err != nil && !errors.As(err, &corrupt) || err == nil && sp.NextOffset <= o {
					t.Fatalf("pass %d, offset %d of %d: %+v, %v", pass, o, s.End(), sp, err)
				}
			}
			if err := s.Verify(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			for _, ts := range []int64{-1, 0, 1003, 1 << 60} {
				ref, _ := s.Acquire()
				err := s.FindTime(ref.File(), ts, s.Base, func(batch.Batch) bool { return true })
				ref.Release()
				if err != nil && !errors.As(err, &corrupt) {
					t.Fatal(err)
				}
			}
			if err := s.Seal(s.End()); err != nil {
				t.Fatal(err)
			}
			s = r.reopen(7, s.End())
		}
	})
}
