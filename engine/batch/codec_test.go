package batch

import (
	"bytes"
	stdgzip "compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compressed is a batch of count records around a payload that some other program compressed.
func compressed(c Codec, count int32, payload []byte) Batch {
	b := withRecords(count, payload)
	b[posAttributes+1] = byte(c)
	b.setCRC()
	return b
}

func gzipped(p []byte) []byte {
	var buf bytes.Buffer
	w := stdgzip.NewWriter(&buf)
	w.Write(p)
	w.Close()
	return buf.Bytes()
}

func lz4ed(p []byte, opts ...lz4.Option) []byte {
	var buf bytes.Buffer
	w := lz4.NewWriter(&buf)
	if err := w.Apply(opts...); err != nil {
		panic(err)
	}
	w.Write(p)
	w.Close()
	return buf.Bytes()
}

func zstded(p []byte, opts ...zstd.EOption) []byte {
	w, err := zstd.NewWriter(nil, opts...)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(p, nil)
}

// zstdStreamed has no content size in its frame, as Java's producer has not.
func zstdStreamed(p []byte, opts ...zstd.EOption) []byte {
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf, opts...)
	if err != nil {
		panic(err)
	}
	io.Copy(w, bytes.NewReader(p))
	w.Close()
	return buf.Bytes()
}

func xerial(version int, blocks ...[]byte) []byte {
	p := append([]byte(xerialMagic), 0, 0, 0, byte(version), 0, 0, 0, 1)
	for _, b := range blocks {
		z := snappy.Encode(nil, b)
		p = binary.BigEndian.AppendUint32(p, uint32(len(z)))
		p = append(p, z...)
	}
	return p
}

func join(ps ...[]byte) []byte { return bytes.Join(ps, nil) }

// TestFraming is what other programs send, and what they must not.
func TestFraming(t *testing.T) {
	recs := samples()["many"][:3000]
	plain := build(t, None, recs...)
	p := []byte(plain.Records())
	half := len(p) / 2
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	cases := map[string]struct {
		c       Codec
		payload []byte
		ok      bool
	}{
		"gzip":                         {Gzip, gzipped(p), true},
		"gzip, two members":            {Gzip, join(gzipped(p[:half]), gzipped(p[half:])), true},
		"gzip, garbage behind":         {Gzip, append(gzipped(p), "garbage"...), false},
		"gzip, cut":                    {Gzip, gzipped(p)[:500], false},
		"gzip, no trailer":             {Gzip, gzipped(p)[:len(gzipped(p))-8], false},
		"gzip, empty":                  {Gzip, nil, false},
		"snappy raw":                   {Snappy, snappy.Encode(nil, p), true},
		"snappy raw, garbage behind":   {Snappy, append(snappy.Encode(nil, p), 1, 2), false},
		"snappy raw, cut":              {Snappy, snappy.Encode(nil, p)[:500], false},
		"snappy, S2 extension":         {Snappy, s2.EncodeBest(nil, append(p, p...)), false},
		"snappy xerial":                {Snappy, xerial(1, p), true},
		"snappy xerial, blocks":        {Snappy, xerial(1, p[:7], nil, p[7:half], p[half:]), true},
		"snappy xerial, concatenated":  {Snappy, join(xerial(1, p[:half]), xerial(1, p[half:])), true},
		"snappy xerial, cut in block":  {Snappy, xerial(1, p)[:500], false},
		"snappy xerial, cut in length": {Snappy, append(xerial(1, p), 0, 0), false},
		"snappy xerial, header alone":  {Snappy, []byte(xerialMagic), false},
		"snappy, empty":                {Snappy, nil, false},
		"lz4":                          {LZ4, lz4ed(p), true},
		"lz4, 64 KiB, checksums":       {LZ4, lz4ed(p, lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true)), true},
		"lz4, content size":            {LZ4, lz4ed(p, lz4.SizeOption(uint64(len(p)))), true},
		"lz4, 4 MiB blocks":            {LZ4, lz4ed(p, lz4.BlockSizeOption(lz4.Block4Mb)), true},
		"lz4, two frames":              {LZ4, join(lz4ed(p[:half]), lz4ed(p[half:])), false},
		"lz4, garbage behind":          {LZ4, append(lz4ed(p), 1), false},
		"lz4, cut":                     {LZ4, lz4ed(p)[:500], false},
		"lz4, legacy frame":            {LZ4, lz4ed(p, lz4.LegacyOption(true)), false},
		"lz4, wrong checksum":          {LZ4, flip(lz4ed(p), -1), false},
		"lz4, wrong header checksum":   {LZ4, flip(lz4ed(p), 6), false},
		"zstd":                         {Zstd, zstded(p), true},
		"zstd, streamed":               {Zstd, zstdStreamed(p), true},
		"zstd, two frames":             {Zstd, join(zstded(p[:half]), zstdStreamed(p[half:])), true},
		"zstd, skippable frames":       {Zstd, join(skippable, zstded(p), skippable), true},
		"zstd, large window":           {Zstd, zstdStreamed(p, zstd.WithWindowSize(64<<20)), true},
		"zstd, wrong checksum":         {Zstd, flip(zstded(p, zstd.WithEncoderCRC(true)), -1), false},
		"zstd, garbage behind":         {Zstd, append(zstded(p), "garbage"...), false},
		"zstd, cut":                    {Zstd, zstdStreamed(p)[:500], false},
		"zstd, empty":                  {Zstd, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := compressed(c.c, plain.Count(), c.payload)
			binary.BigEndian.PutUint64(b[posBaseTimestamp:], uint64(plain.BaseTimestamp()))
			b.setCRC()
			_, err := Check(b, Limits{})
			if (err == nil) != c.ok {
				t.Fatalf("accepted: %v, want %v", err == nil, c.ok)
			}
			var e *CorruptError
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("%T is not typed: %v", err, err)
			}
			if !c.ok {
				return
			}
			if diff := differ(recs, readAll(t, b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func flip(p []byte, at int) []byte {
	if at < 0 {
		at += len(p)
	}
	p[at] ^= 0x55
	return p
}

// Large payloads leave the room that zstd is first tried in, and the pooled windows.
func TestZstdStreams(t *testing.T) {
	recs := []rec{{T: 1, Value: samples()["large value"][0].Value}, {T: 2, Value: make([]byte, 9<<20)}, {T: 3, Value: []byte("end")}}
	p := []byte(build(t, None, recs...).Records())
	for name, payload := range map[string][]byte{
		"content size":   zstded(p),
		"streamed":       zstdStreamed(p),
		"window of 64M":  zstdStreamed(p, zstd.WithWindowSize(64<<20)),
		"single segment": zstded(p, zstd.WithSingleSegment(true)),
	} {
		b := compressed(Zstd, 3, payload)
		binary.BigEndian.PutUint64(b[posBaseTimestamp:], 1)
		b.setCRC()
		if _, err := Check(b, Limits{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := differ(recs, readAll(t, b)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// bombs are small payloads that hold, or claim to hold, very much.
func bombs() map[string]Batch {
	const size = 1 << 25
	value := make([]byte, 16<<20)
	zeros := func(open func(io.Writer) io.WriteCloser) []byte {
		var buf bytes.Buffer
		w := open(&buf)
		// One record whose value is the zeros: the walk must not need to hold it.
		w.Write(appendVarint(nil, size))
		w.Write([]byte{0, 0, 0, 1})
		w.Write(appendVarint(nil, size-20))
		for n := 0; n < size; n += len(value) {
			w.Write(value)
		}
		w.Close()
		return buf.Bytes()
	}
	announced := binary.AppendUvarint(nil, size)
	return map[string]Batch{
		"gzip": compressed(Gzip, 1, zeros(func(w io.Writer) io.WriteCloser { return stdgzip.NewWriter(w) })),
		"lz4": compressed(LZ4, 1, zeros(func(w io.Writer) io.WriteCloser {
			z := lz4.NewWriter(w)
			_ = z.Apply(lz4.BlockSizeOption(lz4.Block4Mb))
			return z
		})),
		"zstd": compressed(Zstd, 1, zeros(func(w io.Writer) io.WriteCloser {
			z, _ := zstd.NewWriter(w, zstd.WithWindowSize(32<<20))
			return z
		})),
		"zstd, many small frames":   compressed(Zstd, 1, bytes.Repeat(zstded(make([]byte, 100<<10)), 10_000)),
		"zstd, size announced":      compressed(Zstd, 1, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0}, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0)),
		"snappy, size announced":    compressed(Snappy, 1, append(announced, 0, 0)),
		"snappy, announced as much": compressed(Snappy, 1, append(binary.AppendUvarint(nil, 100<<20), 0, 0)),
		"snappy, xerial":            compressed(Snappy, 1, join(xerial(1, value), xerial(1, value), xerial(1, value))),
	}
}

func TestBombs(t *testing.T) {
	for name, b := range bombs() {
		for _, call := range map[string]func() error{
			"check": func() error {
				_, err := Check(b, Limits{DecompressedBytesMax: 4 << 20})
				return err
			},
			"recompress": func() error {
				_, err := Recompress(b, Gzip, 1, 1<<20)
				return err
			},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var wg sync.WaitGroup
			errs := make([]error, 3)
			for i := range errs {
				wg.Go(func() { errs[i] = call() })
			}
			wg.Wait()
			runtime.ReadMemStats(&after)
			for _, err := range errs {
				if !errors.Is(err, ErrBomb) && !errors.Is(err, ErrInflate) && !errors.Is(err, ErrInvalid) {
					t.Errorf("%s: %v", name, err)
				}
			}
			// Three at once, with windows of 32 MiB: total, not resident.
			taken := int64(after.TotalAlloc - before.TotalAlloc)
			limit := int64(64 << 20)
			if name == "zstd" {
				limit = 3 * 64 << 20
			}
			if taken > limit {
				t.Errorf("%s: took %d MiB", name, taken>>20)
			}
		}
	}
}

// Nothing that is taken grows with the payload once the pools are warm.
func TestCheckAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("pools are not kept under the race detector")
	}
	small, large := samples()["one byte"], samples()["many"]
	for _, c := range codecs {
		for _, recs := range [][]rec{small, large} {
			b := build(t, c, recs...)
			allocs := testing.AllocsPerRun(20, func() {
				if _, err := Check(b, Limits{}); err != nil {
					t.Fatal(err)
				}
			})
			if allocs > 2 {
				t.Errorf("%v, %d records: %v allocations a check", c, len(recs), allocs)
			}
		}
	}
}

func TestParseCodec(t *testing.T) {
	for _, c := range codecs {
		if got, err := ParseCodec(c.String()); got != c || err != nil {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if _, err := ParseCodec("brotli"); !errors.Is(err, ErrCodec) {
		t.Error(err)
	}
	if s := fmt.Sprint(Codec(7)); s != "codec(7)" {
		t.Error(s)
	}
}
