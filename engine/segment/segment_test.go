package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"platter/engine/batch"
)

const batches = 100

// everyOffset reads at each offset and checks that the batch that holds it comes first.
func everyOffset(t *testing.T, r *rig, s *Segment) {
	t.Helper()
	for o := s.Base; o < s.End(); o++ {
		bs, next, err := r.span(s, o, s.End(), 1, true)
		if err != nil || len(bs) != 1 || bs[0].BaseOffset() > o || bs[0].LastOffset() < o || next != bs[0].LastOffset()+1 {
			t.Fatalf("at %d: %d batches, next %d, %v", o, len(bs), next, err)
		}
	}
}

func TestSpanFindsEveryOffset(t *testing.T) {
	r := newRig(t)
	s := r.fill(50, batches)
	everyOffset(t, r, s)
	everyOffset(t, r, r.seal(s))
	if len(r.log) > 0 {
		t.Fatalf("something was wrong: %q", r.log)
	}
}

// Kafka's rule: an entry once more than the interval has gathered, for the batch that comes then.
func TestIndexEntriesAreKafkas(t *testing.T) {
	r := newRig(t)
	s := r.seal(r.fill(50, batches))
	size := int64(len(r.bytes(s.Path()))) / batches
	var want []OffsetEntry
	since := int64(0)
	for i := range int64(batches) {
		if since > 300 {
			want, since = append(want, OffsetEntry{Offset: 50 + 3*i + 2, Pos: i * size}), 0
		}
		since += size
	}
	index := r.bytes("/d/" + IndexName(50))
	if int64(len(index)) != int64(len(want))*8 {
		t.Fatalf("%d bytes of index for %d entries", len(index), len(want))
	}
	for i, e := range want {
		p := index[8*i:]
		if got := (OffsetEntry{50 + int64(binary.BigEndian.Uint32(p)), int64(binary.BigEndian.Uint32(p[4:]))}); got != e {
			t.Fatalf("entry %d is %+v, want %+v", i, got, e)
		}
	}
	times := r.bytes("/d/" + TimeIndexName(50))
	if len(times) != (len(want)+1)*12 { // and the last one of the sealed segment
		t.Fatalf("%d bytes of time index for %d entries", len(times), len(want)+1)
	}
	last := times[len(times)-12:]
	if ts, o := binary.BigEndian.Uint64(last), binary.BigEndian.Uint32(last[8:]); ts != 1000+10*(batches-1)+2 || o != 3*batches-1 {
		t.Fatalf("the last time entry is %d at %d", ts, o)
	}
}

// An index is a hint: whatever happens to it costs neither data nor the right answer.
func TestBadIndexesAreMadeAnew(t *testing.T) {
	garbage := make([]byte, 10<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range garbage {
		garbage[i] = byte(rng.Uint32())
	}
	spoil := map[string]func(good []byte) []byte{
		"missing":            nil,
		"empty":              func(good []byte) []byte { return nil },
		"10 MiB of garbage":  func(good []byte) []byte { return garbage },
		"garbage as long":    func(good []byte) []byte { return garbage[:len(good)] },
		"half an entry more": func(good []byte) []byte { return append(bytes.Clone(good), 1, 2, 3) },
		"shorter":            func(good []byte) []byte { return good[:len(good)/24*12] },
		"another one's": func(good []byte) []byte {
			out := bytes.Clone(good)
			for i := range out {
				if i%4 == 3 {
					out[i] += 5
				}
			}
			return out
		},
		"Kafka's zero tail": func(good []byte) []byte { return append(bytes.Clone(good), make([]byte, 240)...) },
		"zeros":             func(good []byte) []byte { return make([]byte, len(good)) },
		"last entry wrong": func(good []byte) []byte {
			out := bytes.Clone(good)
			out[len(out)-1] ^= 3
			return out
		},
	}
	for name, change := range spoil {
		for _, suffix := range []string{IndexSuffix, TimeIndexSuffix} {
			t.Run(name+suffix, func(t *testing.T) {
				r := newRig(t)
				s := r.fill(50, batches)
				end := s.End()
				r.seal(s)
				path := "/d/" + strings.TrimSuffix(LogName(50), LogSuffix) + suffix
				good := r.bytes(path)
				if change == nil {
					if err := r.fs.Remove(path); err != nil {
						t.Fatal(err)
					}
				} else {
					r.write(path, -1, change(good))
				}
				s = r.reopen(50, end)
				everyOffset(t, r, s)
				for i := range int64(batches) {
					if got := firstAt(t, s, 1000+10*i+1); got != 50+3*i {
						t.Fatalf("time %d is found at %d, want the batch at %d", 1000+10*i+1, got, 50+3*i)
					}
				}
			})
		}
	}
}

// firstAt is the base offset of the first batch with a timestamp of at least ts.
func firstAt(t *testing.T, s *Segment, ts int64) int64 {
	t.Helper()
	ref, err := s.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Release()
	got := int64(-1)
	if err := s.FindTime(ref.File(), ts, 0, func(b batch.Batch) bool {
		got = b.BaseOffset()
		return false
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// Rot below the recovery point: found by Verify or by a read, never cut, and the rest stays readable.
func TestRotIsKeptAndSteppedOver(t *testing.T) {
	for name, at := range map[string]int64{"length": 8, "magic": 16, "payload": 80, "offset": 0} {
		for _, verify := range []bool{true, false} {
			r := newRig(t)
			s := r.fill(0, batches)
			end, size := s.End(), s.SizeBytes()
			r.seal(s)
			pos := size / batches * 40
			r.write(s.Path(), pos+at, []byte{0x7e, 0x7d, 0x7c})
			s = r.reopen(0, end)
			if verify {
				if err := s.Verify(context.Background(), nil); err != nil {
					t.Fatal(err)
				}
			} else if name == "payload" {
				continue // only Verify looks at it
			}
			most := int64(1000)
			if !verify {
				most = 1 // a longer read does not look at every header
			}
			read := map[int64]bool{}
			for o := int64(0); o < end; {
				bs, next, err := r.span(s, o, end, most, true)
				var corrupt *CorruptError
				if errors.As(err, &corrupt) {
					o++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range bs {
					if batch.CheckCRC(b) != nil {
						t.Fatalf("%s: a bad batch at %d was given out", name, b.BaseOffset())
					}
					read[b.BaseOffset()] = true
				}
				o = next
			}
			if len(read) != batches-1 || read[120] {
				t.Fatalf("%s, verify %v: %d of %d batches are readable; %q", name, verify, len(read), batches, r.log)
			}
			bads := s.Bads()
			if len(bads) != 1 || bads[0].Pos != pos || bads[0].Offset != 120 || bads[0].NextOffset != 123 {
				t.Fatalf("%s: bad ranges are %+v", name, bads)
			}
			if int64(len(r.bytes(s.Path()))) != size {
				t.Fatalf("%s: the file was cut", name)
			}
		}
	}
}

// Recovery cuts the log at the first bad batch past the sure offset, wherever the file was torn.
// Kafka with preallocate=true leaves zeros behind the last batch when it dies; a sealed segment is not cut.
func TestWhatStandsBehindASealedSegmentCountsForNothing(t *testing.T) {
	for name, tail := range map[string][]byte{"zeros": make([]byte, 1<<20), "garbage": bytes.Repeat([]byte{0xa5}, 999)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.fill(50, batches)
			end := s.End()
			r.seal(s)
			size := s.SizeBytes()
			r.write(s.Path(), size, tail)
			s = r.reopen(50, end)
			if bs, next, err := r.span(s, 50, end, size+100, true); err != nil || len(bs) != batches || next != end {
				t.Fatalf("%d of %d batches, next %d, %v", len(bs), batches, next, err)
			}
			everyOffset(t, r, s)
		})
	}
}

func TestRecoverCutsTheTornTail(t *testing.T) {
	whole := newRig(t)
	s := whole.fill(0, batches)
	size := s.SizeBytes() / batches
	log := whole.bytes(s.Path())
	for cut := int64(len(log)); cut >= 0; cut -= 37 {
		r := newRig(t)
		r.write("/d/"+LogName(0), -1, log[:cut])
		got, res, err := Recover(r.env, Files{IndexBytes: -1, TimeIndexBytes: -1}, Pass{CheckFrom: 0, Strict: true, PowerCut: true, IntervalBytes: 300})
		if err != nil {
			t.Fatal(err)
		}
		if n := cut / size; got.End() != 3*n || got.SizeBytes() != n*size || res.Cut != cut-n*size {
			t.Fatalf("cut at %d: end %d, size %d, cut %d", cut, got.End(), got.SizeBytes(), res.Cut)
		}
		everyOffset(t, r, got)
	}
	for _, flip := range []int64{size*50 + 4, size*50 + 10, size*50 + 70} {
		r := newRig(t)
		p := bytes.Clone(log)
		p[flip] ^= 0x10
		r.write("/d/"+LogName(0), -1, p)
		got, _, err := Recover(r.env, Files{IndexBytes: -1, TimeIndexBytes: -1}, Pass{Strict: true, PowerCut: true, IntervalBytes: 300})
		if err != nil || got.End() != 150 {
			t.Fatalf("flipped at %d: end %d, %v", flip, got.End(), err)
		}
	}
}

func TestTruncateKeepsIndexesRight(t *testing.T) {
	for to := int64(0); to <= 3*batches; to += 7 {
		r := newRig(t)
		s := r.fill(0, batches)
		end, err := s.TruncateTo(to, 300)
		if err != nil || end != to/3*3 {
			t.Fatalf("truncated to %d: end %d, %v", to, end, err)
		}
		for i := range 20 {
			b := batchAt(end+int64(i), 1, 5000+int64(i), 100)
			if err := s.Append([]batch.Batch{b}, make([][]byte, 1), 300); err != nil {
				t.Fatal(err)
			}
		}
		everyOffset(t, r, s)
		s = r.seal(s)
		everyOffset(t, r, s)
		if got := firstAt(t, s, 4999); got != end {
			t.Fatalf("time 4999 is found at %d, want %d", got, end)
		}
		if len(r.log) > 0 {
			t.Fatalf("truncated to %d: %q", to, r.log)
		}
	}
}

// The search of an index, from any guess, against a walk over all entries.
func TestLastBelow(t *testing.T) {
	for n := int64(0); n < 2000; n = n*5/3 + 1 {
		var p []byte
		for i := range n {
			p = appendOffsetEntry(p, 0, OffsetEntry{Offset: 2 * i, Pos: i})
		}
		for _, guess := range []float64{-1, 0, 0.3, 0.5, 0.99, 1, 7} {
			for target := int64(-1); target <= 2*n; target += 1 + n/50 {
				want := min((target+2)/2, n) - 1
				entry, i, err := lastBelow(bytes.NewReader(p), n, 8, guess, func(p []byte) bool {
					return decodeOffsetEntry(p, 0).Offset <= target
				})
				if err != nil || i != want || (want < 0) != (entry == nil) || entry != nil && decodeOffsetEntry(entry, 0).Offset != 2*want {
					t.Fatalf("%d entries, guess %v, target %d: entry %d, %v; want %d", n, guess, target, i, err, want)
				}
			}
		}
	}
}

// Whoever still works on a segment that retention renames away is told so: a missing file would pass for a
// failure of the disk, and take the data directory offline.
func TestRetiredMeanwhile(t *testing.T) {
	r := newRig(t)
	s := r.seal(r.fill(0, 100))
	ref, err := s.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Release()
	if _, err := s.MaxTime(ref.File()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Retire(); err != nil {
		t.Fatal(err)
	}
	_, _, first := s.FirstTime()
	for what, err := range map[string]error{
		"a scan":            s.Scan(0, func(batch.Batch) error { return nil }),
		"a verification":    s.Verify(context.Background(), nil),
		"the first time":    first,
		"a look-up by time": s.FindTime(ref.File(), 1500, 0, func(batch.Batch) bool { return true }),
	} {
		if !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v, want ErrGone", what, err)
		}
	}
}

// A segment that is cut and written anew in the midst of a verification has other bytes where the old ones
// stood: these are no rot.
func TestVerifyBesideACut(t *testing.T) {
	r := newRig(t)
	s := r.fill(0, 1)
	write := func(size int) {
		var bs []batch.Batch
		for i := range 80 {
			bs = append(bs, batchAt(3+int64(i), 1, 1000, size))
		}
		if err := s.Append(bs, make([][]byte, len(bs)), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	write(8000)
	cut := false
	err := s.Verify(context.Background(), func(int64) {
		if cut {
			return
		}
		cut = true
		if _, err := s.TruncateTo(3, 1<<20); err != nil {
			t.Fatal(err)
		}
		write(9000)
	})
	if err != nil || !cut || len(s.Bads()) > 0 {
		t.Fatalf("cut: %v; %v, bad: %+v", cut, err, s.Bads())
	}
}
