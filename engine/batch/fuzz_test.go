package batch

import (
	"bytes"
	"testing"
)

// seeds are whole batches in every codec and framing, and record bytes that are wrong in various ways.
func seeds(f *testing.F) []Batch {
	recs := append(samples()["nulls"], samples()["headers"]...)
	var out []Batch
	for _, c := range codecs {
		out = append(out, build(f, c, recs...), build(f, c, samples()["time goes back"]...))
	}
	p := out[0].Records()
	n := out[0].Count()
	out = append(out,
		compressed(Snappy, n, xerial(1, p[:9], p[9:])),
		compressed(Gzip, n, join(gzipped(p[:9]), gzipped(p[9:]))),
		compressed(Zstd, n, join(zstded(p[:9]), zstdStreamed(p[9:]))),
		compressed(LZ4, n, lz4ed(p)),
		withRecords(1, good), withRecords(2, good), withRecords(1, append([]byte{18}, good[1:]...)))
	return out
}

func FuzzSplit(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add([]byte(b))
		f.Add(append(clone(b), b...))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		got, err := Split(nil, p)
		n := 0
		for _, b := range got {
			n += len(b)
		}
		if n > len(p) || (err == nil) != (n == len(p)) {
			t.Fatalf("%d of %d bytes in batches, %v", n, len(p), err)
		}
		if !bytes.Equal(bytes.Join(toBytes(got), nil), p[:n]) {
			t.Fatal("the batches are not the input")
		}
	})
}

func toBytes(bs []Batch) [][]byte {
	var out [][]byte
	for _, b := range bs {
		out = append(out, b)
	}
	return out
}

// FuzzCheck compares Check with its twin, and what is accepted with Walk and Recompress. The CRC is made
// right, or the fuzzer would never come further.
func FuzzCheck(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add([]byte(b), false)
		f.Add([]byte(b), true)
	}
	f.Fuzz(func(t *testing.T, p []byte, keyRequired bool) {
		b := Batch(clone(p))
		if len(b) >= HeaderBytes {
			b.setLength()
			b[posMagic] = magicV2
			b.setCRC()
		}
		l := Limits{DecompressedBytesMax: 4 << 20, KeyRequired: keyRequired, CheckTimestamps: true, NowMs: 1 << 41, BeforeMaxMs: 1 << 50, AfterMaxMs: 1 << 40}
		got, err := Check(b, l)
		want, twinErr := twinCheck(b, l)
		if (err == nil) != (twinErr == nil) || got != want {
			t.Fatalf("%+v, %v; the twin has %+v, %v", got, err, want, twinErr)
		}
		if err != nil {
			return
		}
		n := int32(0)
		err = Walk(b, l.DecompressedBytesMax, func(r *Record) error {
			if r.OffsetDelta != n {
				t.Fatalf("record %d has offset delta %d", n, r.OffsetDelta)
			}
			n++
			return nil
		})
		if err != nil || n != b.Count() {
			t.Fatalf("walk: %d of %d records, %v", n, b.Count(), err)
		}
		again, err := Recompress(b, None, 0, l.DecompressedBytesMax)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := Check(again, l); err != nil || info != want {
			t.Fatalf("recompressed: %+v, %v", info, err)
		}
	})
}

func FuzzWalk(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		_ = Walk(Batch(p), 4<<20, func(*Record) error { return nil })
	})
}

// FuzzInflate takes the fuzzer straight to a decoder. What comes out is what the twin says.
func FuzzInflate(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(byte(b.Codec()), []byte(b.Records()))
	}
	f.Fuzz(func(t *testing.T, codec byte, p []byte) {
		c := Codec(codec % 5)
		if c == None {
			return
		}
		const bound = 4 << 20
		var got bytes.Buffer
		err := inflateTo(&got, compressed(c, 1, p), bound)
		want, twinErr := twinInflate(c, p, bound)
		if (err == nil) != (twinErr == nil) {
			t.Fatalf("%v: %v, the twin has %v", c, err, twinErr)
		}
		if err == nil && !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%v: %d bytes, the twin has %d", c, got.Len(), len(want))
		}
	})
}

func FuzzLegacy(f *testing.F) {
	inner := append(legacy(1, 0, 0, 5, []byte("k"), []byte("v")), legacy(1, 1, 0, 6, nil, nil)...)
	f.Add(legacy(0, 3, 0, 0, []byte("k"), []byte("v")))
	f.Add(legacy(1, 3, 1, 7, nil, gzipped(inner)))
	f.Add(legacy(1, 3, 2, 7, nil, xerial(1, inner)))
	f.Add(legacy(0, 3, 3, 7, nil, lz4ed(inner)))
	f.Fuzz(func(t *testing.T, p []byte) {
		e, err := ReadLegacy(p)
		if err != nil {
			return
		}
		_ = WalkLegacy(e, 4<<20, func(LegacyEntry) error { return nil })
	})
}
