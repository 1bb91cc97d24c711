package producer

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTranscript runs the scripts in testdata/state: each line of a script is one call.
func TestTranscript(t *testing.T) {
	datadriven.RunTest(t, "testdata/state", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "run" {
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		s := New()
		end := int64(0)
		mark := 0
		var out strings.Builder
		for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			fmt.Fprintf(&out, "%s: ", line)
			var id, ts, n int64
			var epoch int16
			var seq, count int32
			switch word, args, _ := strings.Cut(line, " "); word {
			case "produce": // id epoch base-sequence count timestamp
				mustScan(t, args, &id, &epoch, &seq, &count, &ts)
				b := Batch{ProducerID: id, Epoch: epoch, BaseSequence: seq, LastSequence: seqPlus(seq, count-1),
					BaseOffset: end, LastOffset: end + int64(count) - 1, TimestampMs: ts}
				v := s.Check(b)
				fmt.Fprint(&out, v.Kind)
				switch v.Kind {
				case Fresh:
					s.Apply(b)
					fmt.Fprintf(&out, " at %d", end)
					end += int64(count)
				case Duplicate:
					fmt.Fprintf(&out, " of %d-%d (%d ms)", v.BaseOffset, v.LastOffset, v.TimestampMs)
				default:
					fmt.Fprintf(&out, ", last epoch %d sequence %d", v.LastEpoch, v.LastSequence)
				}
			case "control": // id epoch timestamp
				mustScan(t, args, &id, &epoch, &ts)
				s.Apply(Batch{ProducerID: id, Epoch: epoch, BaseSequence: None, LastSequence: None,
					BaseOffset: end, LastOffset: end, TimestampMs: ts})
				end++
			case "mark":
				mark = s.Mark()
			case "rollback":
				s.Rollback(mark)
			case "commit":
				s.Commit()
			case "expire": // now expiration
				mustScan(t, args, &ts, &n)
				fmt.Fprintf(&out, "%d gone", s.Expire(ts, n))
			case "reload": // now expiration
				mustScan(t, args, &ts, &n)
				entries, err := DecodeSnapshot(EncodeSnapshot(s.Snapshot()))
				if err != nil {
					t.Fatal(err)
				}
				s.Restore(entries, ts, n)
			case "show":
				ps := s.Producers()
				sort.Slice(ps, func(i, j int) bool { return ps[i].ProducerID < ps[j].ProducerID })
				fmt.Fprintf(&out, "%v", ps)
			default:
				t.Fatalf("unknown word %q", word)
			}
			out.WriteByte('\n')
		}
		return out.String()
	})
}

func mustScan(t *testing.T, s string, dst ...any) {
	t.Helper()
	if _, err := fmt.Sscan(s, dst...); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
}

func seqPlus(seq, n int32) int32 { return int32((int64(seq) + int64(n)) % (math.MaxInt32 + 1)) }

func TestSequenceArithmetic(t *testing.T) {
	for _, c := range []struct{ seq, n, want int32 }{
		{5, 2, 3}, {0, 1, math.MaxInt32}, {1, 3, math.MaxInt32 - 1}, {math.MaxInt32, 0, math.MaxInt32},
	} {
		if got := sequenceBefore(c.seq, c.n); got != c.want {
			t.Errorf("%d before %d: %d, want %d", c.n, c.seq, got, c.want)
		}
		if back := seqPlus(c.want, c.n); back != c.seq {
			t.Errorf("%d after %d: %d, want %d", c.n, c.want, back, c.seq)
		}
	}
}

// TestRollbackIsExact compares the state after Rollback with one that never saw the batches.
func TestRollbackIsExact(t *testing.T) {
	s := New()
	seq := map[int64]int32{}
	apply := func(id int64, epoch int16) {
		b := Batch{ProducerID: id, Epoch: epoch, BaseSequence: seq[id], LastSequence: seq[id] + 2, BaseOffset: 10, LastOffset: 12, TimestampMs: 7}
		seq[id] += 3
		s.Apply(b)
	}
	for i := range int64(20) {
		apply(i%4, 0)
	}
	s.Commit()
	before := fmt.Sprint(dumpEntries(s))
	outer := s.Mark()
	apply(1, 0)
	apply(99, 0)
	inner := s.Mark()
	middle := fmt.Sprint(dumpEntries(s))
	for i := range int64(9) {
		apply(i, int16(i%3))
	}
	s.Rollback(inner)
	if got := fmt.Sprint(dumpEntries(s)); got != middle {
		t.Errorf("inner rollback:\n%s\nwant\n%s", got, middle)
	}
	s.Rollback(outer)
	if got := fmt.Sprint(dumpEntries(s)); got != before {
		t.Errorf("outer rollback:\n%s\nwant\n%s", got, before)
	}
}

func dumpEntries(s *State) map[int64]entry {
	m := map[int64]entry{}
	for id, e := range s.entries {
		m[id] = *e
	}
	return m
}

func TestAppendPathDoesNotAllocate(t *testing.T) {
	s := New()
	b := Batch{ProducerID: 1, LastSequence: 9, LastOffset: 9}
	s.Apply(b)
	s.Commit()
	n := testing.AllocsPerRun(100, func() {
		b.BaseSequence += 10
		b.LastSequence += 10
		m := s.Mark()
		if s.Check(b).Kind != Fresh {
			t.Fatal("not fresh")
		}
		s.Apply(b)
		_ = m
		s.Commit()
	})
	if n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}
