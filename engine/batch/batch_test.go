package batch

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

// rec is a record as tests state it.
type rec struct {
	T          int64
	Key, Value []byte
	Headers    []Header
}

func build(t testing.TB, c Codec, recs ...rec) Batch {
	t.Helper()
	bl := NewBuilder()
	bl.Codec = c
	for _, r := range recs {
		bl.Add(r.T, r.Key, r.Value, r.Headers...)
	}
	b, err := bl.Build()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readAll(t testing.TB, b Batch) []rec {
	t.Helper()
	var out []rec
	i := int32(0)
	err := Walk(b, 0, func(r *Record) error {
		if r.OffsetDelta != i {
			t.Errorf("record %d has offset delta %d", i, r.OffsetDelta)
		}
		i++
		out = append(out, rec{
			T: b.TimestampOf(r), Key: clone(r.Key), Value: clone(r.Value),
			Headers: cloneHeaders(r.Headers),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func clone(p []byte) []byte {
	if p == nil {
		return nil
	}
	return append([]byte{}, p...)
}

func cloneHeaders(hs []Header) []Header {
	var out []Header
	for _, h := range hs {
		out = append(out, Header{h.Key, clone(h.Value)})
	}
	return out
}

// differ says where two record sets part, in few words however large the records are.
func differ(want, got []rec) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(want[i], got[i]) {
			return fmt.Sprintf("record %d is %.200v, want %.200v", i, got[i], want[i])
		}
	}
	return ""
}

// samples are record sets with every shape that matters, some larger than a chunk.
func samples() map[string][]rec {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	var many []rec
	for i := range 5000 {
		many = append(many, rec{T: 1000 + int64(rnd.IntN(1<<20)), Key: fmt.Appendf(nil, "key-%d", i),
			Value: noise[:rnd.IntN(200)]})
	}
	return map[string][]rec{
		"one byte":       {{T: 1, Value: []byte("x")}},
		"nulls":          {{T: 1}, {T: 2, Key: []byte{}, Value: []byte{}}, {T: 3, Key: []byte("k")}},
		"no timestamp":   {{T: -1, Value: []byte("x")}, {T: -1}},
		"time goes back": {{T: 1 << 41, Value: []byte("x")}, {T: 5}, {T: 1<<41 + 1}, {T: 1<<41 + 1}},
		"headers": {{T: 1, Headers: []Header{{"a", nil}, {"", []byte{}}, {"long", noise[:1000]}}},
			{T: 1, Key: noise[:70], Headers: []Header{{strings.Repeat("k", 200), noise[:64]}}}},
		"large value":   {{T: 1, Value: noise}, {T: 2, Value: noise[:7]}},
		"inflates much": {{T: 1, Value: make([]byte, 3<<20)}, {T: 2, Key: []byte("k"), Value: make([]byte, 100<<10)}},
		"many":          many,
	}
}

func TestRoundTrip(t *testing.T) {
	for name, recs := range samples() {
		for _, c := range codecs {
			t.Run(name+"/"+c.String(), func(t *testing.T) {
				b := build(t, c, recs...)
				info, err := Check(b, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if b.Codec() != c || int(b.Count()) != len(recs) || b.LastOffset() != int64(len(recs)-1) {
					t.Errorf("codec %v, count %d, last offset %d", b.Codec(), b.Count(), b.LastOffset())
				}
				if diff := differ(recs, readAll(t, b)); diff != "" {
					t.Error(diff)
				}
				var want Info
				want.MaxTimestampMs = -1
				for i, r := range recs {
					if r.T > want.MaxTimestampMs {
						want.MaxTimestampMs, want.OffsetDeltaMaxTimestamp = r.T, int32(i)
					}
				}
				want.InflatedBytes = int64(len(build(t, None, recs...)) - HeaderBytes)
				if info != want {
					t.Errorf("info %+v, want %+v", info, want)
				}
				if want.MaxTimestampMs != b.MaxTimestamp() {
					t.Errorf("max timestamp %d, want %d", b.MaxTimestamp(), want.MaxTimestampMs)
				}
			})
		}
	}
}

func TestRecompress(t *testing.T) {
	recs := samples()["many"]
	for _, from := range codecs {
		for _, to := range codecs {
			b, err := Recompress(build(t, from, recs...), to, 0, 0)
			if err != nil {
				t.Fatalf("%v to %v: %v", from, to, err)
			}
			if _, err := Check(b, Limits{}); err != nil {
				t.Fatalf("%v to %v: %v", from, to, err)
			}
			if !bytes.Equal(b, build(t, to, recs...)) {
				t.Errorf("%v to %v: not as if it had been built so", from, to)
			}
		}
	}
	for c, levels := range map[Codec][]int{Gzip: {1, 9}, LZ4: {1, 9, 17}, Zstd: {-5, 1, 3, 22}} {
		for _, level := range levels {
			b, err := Recompress(build(t, None, recs...), c, level, 0)
			if err != nil {
				t.Fatalf("%v level %d: %v", c, level, err)
			}
			if diff := differ(recs, readAll(t, b)); diff != "" {
				t.Errorf("%v level %d: %s", c, level, diff)
			}
		}
	}
}

func TestPatchInPlace(t *testing.T) {
	b := build(t, LZ4, rec{T: 100, Value: []byte("a")}, rec{T: 200})
	b.SetBaseOffset(1 << 40)
	b.SetLeaderEpoch(7)
	if err := CheckCRC(b); err != nil {
		t.Fatal(err)
	}
	if b.BaseOffset() != 1<<40 || b.LastOffset() != 1<<40+1 || b.LeaderEpoch() != 7 {
		t.Errorf("offsets %d to %d, epoch %d", b.BaseOffset(), b.LastOffset(), b.LeaderEpoch())
	}
	b.SetLogAppendTime(555)
	if err := CheckCRC(b); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, b); got[0].T != 555 || got[1].T != 555 {
		t.Errorf("times %d and %d, want the broker's", got[0].T, got[1].T)
	}
	b.SetMaxTimestamp(200)
	if got := readAll(t, b); b.LogAppendTime() || got[0].T != 100 || got[1].T != 200 {
		t.Errorf("the records' own times are lost: %v", got)
	}
	if err := CheckCRC(b); err != nil {
		t.Fatal(err)
	}
}

func TestLastSequenceWraps(t *testing.T) {
	bl := NewBuilder()
	bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = 1, 0, 1<<31-2
	for range 4 {
		bl.Add(1, nil, nil)
	}
	b, err := bl.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := b.LastSequence(); got != 1 {
		t.Errorf("last sequence %d, want 1", got)
	}
}

func TestSplit(t *testing.T) {
	one, two := build(t, None, rec{T: 1, Value: []byte("a")}), build(t, Gzip, rec{T: 2}, rec{T: 3})
	both := append(append([]byte{}, one...), two...)
	got, err := Split(nil, both)
	if err != nil || len(got) != 2 || !bytes.Equal(got[0], one) || !bytes.Equal(got[1], two) {
		t.Fatalf("%d batches, %v", len(got), err)
	}
	if &got[0][0] != &both[0] {
		t.Error("a batch was copied")
	}
	for cut := len(one) + 1; cut < len(both); cut++ {
		got, err := Split(nil, both[:cut])
		var c *CorruptError
		if !errors.As(err, &c) || !errors.Is(err, ErrTruncated) || len(got) != 1 {
			t.Fatalf("cut at %d: %d batches, %v", cut, len(got), err)
		}
		if c.Pos < int64(len(one)) {
			t.Fatalf("cut at %d: blamed on byte %d", cut, c.Pos)
		}
	}
}
