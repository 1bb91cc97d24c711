package lane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

const mib = 1 << 20

func params() Params {
	return Params{
		RunBytes: 16 * mib, FirstBytes: mib, MemoryBytes: 64 * mib, Depth: 1, SharePercent: 80,
		IdleAfter: 30 * time.Second, BehindBytes: 4 * mib, CloseBytes: 32 * mib, DropBytes: 4 * mib, StreamsMax: 100,
	}
}

// TestTranscripts: each line is an event at a time, positions and sizes in MiB; what follows from it is printed.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var l *Lane
		now := time.Duration(0)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				p := params()
				for _, a := range d.CmdArgs {
					set(t, &p, a.Key, a.Vals[0])
				}
				l, now = New(p), 0
				return ""
			}
			var out strings.Builder
			for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
				now += play(t, l, now, line, &out)
			}
			return out.String()
		})
	})
}

func set(t *testing.T, p *Params, key, value string) {
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	switch key {
	case "depth":
		p.Depth = n
	case "memory":
		p.MemoryBytes = int64(n) * mib
	case "streams":
		p.StreamsMax = n
	case "turn":
		p.TurnMax = time.Duration(n) * time.Millisecond
	case "share":
		p.SharePercent = n
	default:
		t.Fatalf("no parameter %s", key)
	}
}

// play does one line and prints what the lane answers; the time that passes is returned.
func play(t *testing.T, l *Lane, now time.Duration, line string, out *strings.Builder) (passed time.Duration) {
	w := strings.Fields(line)
	num := func(i int) int64 {
		v, err := strconv.ParseInt(w[i], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return v
	}
	fmt.Fprintf(out, "%s\n", line)
	switch w[0] {
	case "wait":
		passed = time.Duration(num(1)) * time.Millisecond
	case "ask": // ask, file, position, length, limit
		if l.Ask(now, AskID(num(1)), FileID(num(2)), num(3)*mib, num(4)*mib, num(5)*mib) {
			fmt.Fprintln(out, "  is there")
		}
	case "background":
		l.AskBackground(now, AskID(num(1)), num(2)*mib)
	case "took":
		l.Took(now, FileID(num(1)), num(2)*mib, num(3)*mib)
	case "done":
		l.Done(now, RunID(num(1)), num(2)*mib)
	case "sent":
		l.Sent(RunID(num(1)))
	case "busy":
		l.Busy(now)
	case "forget":
		l.Forget(FileID(num(1)), num(2)*mib)
	case "cancel":
		l.Cancel(AskID(num(1)))
	case "stats":
		s := l.Stats()
		fmt.Fprintf(out, "  streams %d, waiting %d, held %d MiB, runs %d, dropped %d MiB, reclaimed %d\n",
			s.Streams, s.Waiting, s.HeldBytes/mib, s.Runs, s.DroppedBytes/mib, s.Reclaimed)
	default:
		t.Fatalf("what is %q?", line)
	}
	o := l.Step(now + passed)
	for _, id := range o.Wake {
		fmt.Fprintf(out, "  wake %d\n", id)
	}
	for _, r := range o.Runs {
		if r.Background {
			fmt.Fprintf(out, "  run %d: the background's %d\n", r.ID, r.Ask)
			continue
		}
		fmt.Fprintf(out, "  run %d: file %d, %d to %d\n", r.ID, r.File, r.Pos/mib, (r.Pos+r.N)/mib)
	}
	for _, d := range o.Drops {
		fmt.Fprintf(out, "  drop file %d, %d to %d\n", d.File, d.Pos/mib, (d.Pos+d.N)/mib)
	}
	for _, id := range o.Gone {
		fmt.Fprintf(out, "  file %d is forgotten\n", id)
	}
	if o.Next > now+passed && o.Next < now+passed+time.Second {
		fmt.Fprintf(out, "  next in %v\n", o.Next-now-passed)
	}
	return passed
}

// TestIntervals compares the set of bytes with a plain array of bits.
func TestIntervals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var v intervals
		var bits [64]bool
		for range 40 {
			from := rnd.Int64N(60)
			to := from + rnd.Int64N(63-from)
			changed := int64(0)
			put := rnd.IntN(2) == 0
			for i := from; i < to; i++ {
				if bits[i] != put {
					changed++
				}
				bits[i] = put
			}
			got := int64(0)
			if put {
				got = v.add(from, to)
			} else {
				got = v.remove(from, to)
			}
			var want intervals
			for i := range int64(63) {
				if bits[i] && (i == 0 || !bits[i-1]) {
					want = append(want, interval{i, i})
				}
				if bits[i] {
					want[len(want)-1].to = i + 1
				}
			}
			if got != changed || !slices.Equal(v, want) {
				t.Fatalf("put %v [%d, %d): changed %d, want %d; have %v, want %v", put, from, to, got, changed, v, want)
			}
			a := rnd.Int64N(60)
			b := a + 1 + rnd.Int64N(3)
			all := true
			for i := a; i < b; i++ {
				all = all && bits[i]
			}
			if v.covers(a, b) != all {
				t.Fatalf("%v covers [%d, %d)? want %v", v, a, b, all)
			}
		}
	}
}

// TestNobodyIsForgotten throws random events at a lane and checks after each: memory within its bound (beyond a first run
// for those who wait), and in the end every ask was answered and nothing is held.
func TestNobodyIsForgotten(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		p := params()
		p.Depth, p.MemoryBytes, p.StreamsMax = 1+rnd.IntN(3), int64(8+rnd.IntN(100))*mib, 1+rnd.IntN(20)
		l := New(p)
		waiting := map[AskID]bool{}
		var flying []Run
		now, last := time.Duration(1), AskID(0)
		settle := func() {
			o := l.Step(now)
			for _, id := range o.Wake {
				if !waiting[id] {
					t.Fatalf("seed %d: ask %d is woken and does not wait", seed, id)
				}
				delete(waiting, id)
			}
			for _, r := range o.Runs {
				if r.Background {
					if !waiting[r.Ask] {
						t.Fatalf("seed %d: background %d does not wait", seed, r.Ask)
					}
					delete(waiting, r.Ask)
				}
				if r.N <= 0 {
					t.Fatalf("seed %d: empty run %+v", seed, r)
				}
				flying = append(flying, r)
			}
			if len(flying) > 2*p.Depth {
				t.Fatalf("seed %d: %d runs at once", seed, len(flying))
			}
			// An ask here is for at most 2 MiB, which takes three short runs.
			st := l.Stats()
			if most := p.MemoryBytes + int64(2*p.Depth+st.Streams)*3*p.FirstBytes; st.HeldBytes < 0 || st.HeldBytes > most {
				t.Fatalf("seed %d: %d bytes are held, allowed are %d", seed, st.HeldBytes, most)
			}
		}
		for range 600 {
			now += time.Duration(rnd.IntN(50)) * time.Millisecond
			id := FileID(1 + rnd.IntN(6))
			pos := rnd.Int64N(200) * mib
			switch k := rnd.IntN(10); {
			case k < 3:
				last++
				if !l.Ask(now, last, id, pos, 1+rnd.Int64N(2*mib), 200*mib) {
					waiting[last] = true
				}
			case k < 4:
				last++
				l.AskBackground(now, last, 4*mib)
				waiting[last] = true
			case k < 7 && len(flying) > 0:
				i := rnd.IntN(len(flying))
				got := flying[i].N
				if rnd.IntN(5) == 0 {
					got = rnd.Int64N(got + 1)
				}
				l.Done(now, flying[i].ID, got)
				flying = slices.Delete(flying, i, i+1)
			case k < 8:
				l.Took(now, id, pos, mib)
			case k == 8:
				l.Busy(now)
				if len(flying) > 0 {
					l.Sent(flying[rnd.IntN(len(flying))].ID)
				}
			case rnd.IntN(4) == 0:
				l.Forget(id, pos*int64(rnd.IntN(2)))
			}
			settle()
		}
		for i := 0; len(waiting) > 0 || len(flying) > 0; i++ {
			if i > 10_000 {
				t.Fatalf("seed %d: %d still wait: %+v", seed, len(waiting), l.Stats())
			}
			if len(flying) > 0 {
				l.Done(now, flying[0].ID, flying[0].N)
				flying = flying[1:]
			}
			now += 10 * time.Millisecond
			settle()
		}
		now += p.IdleAfter * 2
		settle()
		if s := l.Stats(); s.HeldBytes != 0 || s.Streams != 0 || len(l.files) != 0 {
			t.Fatalf("seed %d: left over %+v, %d files", seed, s, len(l.files))
		}
	}
}
