package hddsim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func array(t *testing.T, m *Machine, level, drives int) Device {
	t.Helper()
	return arrayOf(t, m, DefaultRAID(level), drives)
}

func arrayOf(t *testing.T, m *Machine, p RAIDParams, drives int) Device {
	t.Helper()
	d, err := NewArray(m, p, HDD7200(), drives, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mbPerSec(bytes int64, took time.Duration) float64 { return float64(bytes) / took.Seconds() / 1e6 }

// Sequential transfer is that of the data disks together, outside; a writer to parity needs a stripe cache that holds
// several rows (md's own default, 256, is known to slow it down).
func TestRAIDSequential(t *testing.T) {
	for _, c := range []struct {
		level, drives, cache, readers, writers int
		least                                  float64 // of writing
	}{
		{0, 4, 0, 4, 4, 0.95}, {10, 4, 0, 2, 2, 0.95}, {5, 6, 2048, 5, 5, 0.9}, {6, 6, 2048, 4, 4, 0.9}, {5, 6, 256, 5, 5, 0.4},
	} {
		rate := func(kind Kind) float64 {
			var m Machine
			p := DefaultRAID(c.level)
			p.StripeCache = c.cache
			d := arrayOf(t, &m, p, c.drives)
			const n, count = 4 << 20, 600
			next := sequential(0, n, kind)
			took, _ := Loop(&m, d, 8, count, func(i int) Request { r := next(i); r.More = i+1 < count; return r })
			return mbPerSec(n*count, took)
		}
		read, write := rate(Read), rate(Write)
		t.Logf("RAID-%d of %d, stripe cache %d: sequential reads %.0f MB/s, writes %.0f", c.level, c.drives, c.cache, read, write)
		if most := 150 * float64(c.readers); read > most*1.02 || read < most*0.95 {
			t.Errorf("reads: the data disks together have %.0f", most)
		}
		if most := 150 * float64(c.writers); write > most*1.02 || write < most*c.least {
			t.Errorf("writes: the data disks together have %.0f", most)
		}
	}
}

// A small write on RAID-5 reads old data and old parity, on two disks at once, and writes both a turn later.
func TestRAID5SmallWrites(t *testing.T) {
	var m Machine
	d := array(t, &m, 5, 6)
	const count = 1000
	took, _ := Loop(&m, d, 1, count, randomAt(d, 4096, Write, 1))
	st := d.Stats()
	if st.Reads != 2*count || st.Writes != 2*count {
		t.Errorf("%d writes gave %d reads and %d writes", count, st.Reads, st.Writes)
	}
	near(t, "writes a second", perSec(count, took), 1/smallWrite(newGeometry(HDD7200(), 0)).Seconds(), 0.05)
	rate := mbPerSec(4096*count, took)
	t.Logf("RAID-5, 4-KiB random writes at depth 1: %.3f MB/s", rate)
	if rate < 0.15 || rate > 0.25 {
		t.Errorf("%.3f MB/s", rate)
	}
}

// smallWrite is the time of a read-modify-write by arithmetic: the later of two independent approaches (by random
// numbers, since the maximum has no short formula), and the rest of a turn until the same place comes round.
func smallWrite(g *geometry) time.Duration {
	rng := rand.New(rand.NewPCG(9, 9))
	approach := func() time.Duration {
		x, y := rng.Int64N(g.cylinders), rng.Int64N(g.cylinders)
		return g.seek(x*int64(g.p.Heads), y*int64(g.p.Heads), false) + time.Duration(rng.Float64()*float64(g.turn))
	}
	var sum time.Duration
	const n = 20000
	for range n {
		// Each disk reads, and waits for the slower one; it has to come round to its own place again.
		a, b := approach(), approach()
		both := max(a, b) + 2*g.p.CommandOverhead
		round := func(own time.Duration) time.Duration {
			at := own + g.turn
			for at < both {
				at += g.turn
			}
			return at
		}
		sum += max(round(a), round(b))
	}
	return sum / n
}

func TestRAID5RandomReads(t *testing.T) {
	rates := map[int]float64{}
	for _, depth := range []int{1, 32} {
		var m Machine
		d := array(t, &m, 5, 6)
		took, _ := Loop(&m, d, depth, 3000, randomAt(d, 4096, Read, 1))
		rates[depth] = perSec(3000, took)
		t.Logf("RAID-5 of 6, random reads at depth %d: %.0f a second, %.2f MB/s", depth, rates[depth], rates[depth]*4096/1e6)
	}
	if rates[1] < 70 || rates[1] > 95 || rates[32] < 4*rates[1] || rates[32] > 12*rates[1] {
		t.Errorf("random reads: %.0f a second at depth 1, %.0f at 32", rates[1], rates[32])
	}
}

// TestParityLayout: each row has its parity on another member, and every member's place is used once.
func TestParityLayout(t *testing.T) {
	for _, level := range []int{5, 6} {
		var m Machine
		d := array(t, &m, level, 6).(*parity)
		parities := map[int]bool{}
		for r := range int64(6) {
			var used []int
			for c := range 6 {
				used = append(used, d.member(r, c))
			}
			parities[d.member(r, d.data)] = true
			slices.Sort(used)
			if !slices.Equal(used, []int{0, 1, 2, 3, 4, 5}) {
				t.Errorf("RAID-%d row %d uses %v", level, r, used)
			}
		}
		if len(parities) != 6 {
			t.Errorf("RAID-%d: parity on %d members only", level, len(parities))
		}
	}
}

// Whether a part of a stripe is written by what it replaces or by what it leaves, is what reads less.
func TestParityChoice(t *testing.T) {
	for _, c := range []struct {
		level, chunks int
		reads, writes int64
	}{
		{5, 1, 2, 2}, {5, 2, 3, 3}, {5, 3, 2, 4}, {5, 4, 1, 5}, {5, 5, 0, 6},
		{6, 1, 3, 3}, {6, 2, 2, 4}, {6, 4, 0, 6},
	} {
		var m Machine
		d := array(t, &m, c.level, 6)
		for i := range c.chunks {
			d.Submit(&Request{Kind: Write, Pos: int64(i) * 512 << 10, Len: 4096, Done: func() {}})
		}
		m.Run()
		if st := d.Stats(); st.Reads != c.reads || st.Writes != c.writes {
			t.Errorf("RAID-%d, %d of a stripe's pages: %d reads, %d writes; want %d, %d", c.level, c.chunks, st.Reads, st.Writes, c.reads, c.writes)
		}
	}
}

func TestParityRemembersStripes(t *testing.T) {
	var m Machine
	d := array(t, &m, 5, 6)
	Loop(&m, d, 1, 10, func(int) Request { return Request{Kind: Write, Pos: 0, Len: 4096} })
	if st := d.Stats(); st.Reads != 2 || st.Writes != 20 {
		t.Errorf("writing one page ten times: %d reads, %d writes", st.Reads, st.Writes)
	}
}

// Everything that is submitted is done, in any mixture.
func TestParityMixture(t *testing.T) {
	for seed := range uint64(20) {
		var m Machine
		p := DefaultRAID(5 + int(seed%2))
		p.ChunkBytes, p.StripeCache = 64<<10, 16
		if seed%3 == 0 {
			p.Failed = 2
		}
		d, err := NewArray(&m, p, HDD7200(), 5, seed)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 5))
		const count = 1500
		_, latency := Loop(&m, d, 1+rng.IntN(40), count, func(int) Request {
			if rng.IntN(50) == 0 {
				return Request{Kind: Flush}
			}
			n := int64(1+rng.IntN(200)) * pageBytes
			return Request{Kind: Kind(rng.IntN(2)), Pos: rng.Int64N(500) * pageBytes, Len: n, More: rng.IntN(3) == 0}
		})
		if len(latency) != count {
			t.Fatalf("seed %d: %d of %d requests are done", seed, len(latency), count)
		}
		m.Run()
		if s := d.(*parity); s.heads != 0 || len(s.waiting) != 0 {
			t.Errorf("seed %d: %d stripes in work, %d rows waiting at the end", seed, s.heads, len(s.waiting))
		}
	}
}

func TestRAIDRefusals(t *testing.T) {
	var m Machine
	for _, c := range []struct{ level, drives int }{{0, 1}, {1, 1}, {5, 2}, {6, 3}, {10, 3}, {4, 5}} {
		if _, err := NewArray(&m, DefaultRAID(c.level), HDD7200(), c.drives, 1); err == nil {
			t.Errorf("RAID-%d of %d drives is taken", c.level, c.drives)
		}
	}
	p := DefaultRAID(5)
	p.ChunkBytes = 5000
	if _, err := NewArray(&m, p, HDD7200(), 3, 1); err == nil {
		t.Error("a chunk of 5000 bytes is taken")
	}
}
