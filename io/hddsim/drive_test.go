package hddsim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// near wants got within a part of want.
func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*want {
		t.Errorf("%s: %.4g, want %.4g within %.1f%%", what, got, want, 100*part)
	} else {
		t.Logf("%s: %.4g (by arithmetic %.4g)", what, got, want)
	}
}

func randomAt(d Device, n int64, kind Kind, seed uint64) func(int) Request {
	rng := rand.New(rand.NewPCG(seed, 2))
	return func(int) Request {
		return Request{Kind: kind, Pos: rng.Int64N(d.SizeBytes()/n) * n, Len: n}
	}
}

func sequential(from, n int64, kind Kind) func(int) Request {
	return func(i int) Request { return Request{Kind: kind, Pos: from + int64(i)*n, Len: n} }
}

func perSec(count int, took time.Duration) float64 { return float64(count) / took.Seconds() }

// averageSeek is the mean of the seek curve over random places: by numbers, not by the model's run. The density of the
// distance x between two random points of a stroke of 1 is 2(1-x). (Bytes are a little denser outside.)
func averageSeek(g *geometry) time.Duration {
	const steps = 10000
	var sum float64
	for i := range steps {
		x := (float64(i) + 0.5) / steps
		to := int64(x*float64(g.cylinders)) * int64(g.p.Heads)
		sum += 2 * (1 - x) * g.seek(0, to, false).Seconds() / steps
	}
	return time.Duration(sum * float64(time.Second))
}

func TestSeekCurve(t *testing.T) {
	g := newGeometry(HDD7200(), 0)
	h := int64(g.p.Heads)
	for _, c := range []struct {
		cylinders int64
		want      time.Duration
	}{
		{1, g.p.TrackToTrack}, {g.cylinders / 3, g.p.AverageSeek}, {g.cylinders - 1, g.p.FullStroke},
	} {
		near(t, "seek in ms", g.seek(0, c.cylinders*h, false).Seconds()*1e3, c.want.Seconds()*1e3, 0.001)
	}
	last := time.Duration(0)
	for c := int64(0); c < g.cylinders; c += g.cylinders / 1000 {
		s := g.seek(0, c*h, false)
		if s < last || s != g.seek(c*h, 0, false) {
			t.Fatalf("seek over %d cylinders takes %v, over fewer %v, back %v", c, s, last, g.seek(c*h, 0, false))
		}
		last = s
	}
	if s := g.seek(0, h*9, true) - g.seek(0, h*9, false); s != g.p.WriteSettle {
		t.Errorf("a write takes %v more to settle", s)
	}
}

// A random read is a seek, half a turn on average, and the transfer.
func TestRandomReadsAtDepthOne(t *testing.T) {
	for name, p := range map[string]DriveParams{"7200": HDD7200(), "5400": HDD5400(), "15000": HDD15000()} {
		t.Run(name, func(t *testing.T) {
			var m Machine
			d := NewDrive(&m, p, 1)
			const count = 4000
			took, _ := Loop(&m, d, 1, count, randomAt(d, 4096, Read, 1))
			st := d.Stats()
			near(t, "half a turn, ms", st.Rotating.Seconds()*1e3/count, d.g.turn.Seconds()*1e3/2, 0.03)
			near(t, "average seek, ms", st.Seeking.Seconds()*1e3/count, averageSeek(d.g).Seconds()*1e3, 0.03)
			meanTrack := float64(d.g.size) / float64(d.g.cylinders*int64(p.Heads))
			each := averageSeek(d.g) + d.g.turn/2 + p.CommandOverhead + time.Duration(4096/meanTrack*float64(d.g.turn))
			near(t, "reads a second", perSec(count, took), 1/each.Seconds(), 0.02)
		})
	}
}

func TestSequential(t *testing.T) {
	for _, kind := range []Kind{Read, Write} {
		var m Machine
		d := NewDrive(&m, HDD7200(), 1)
		took, _ := Loop(&m, d, 4, 4000, sequential(0, 256<<10, kind))
		near(t, "outer MB/s, "+kind.String(), 4000*(256<<10)/took.Seconds()/1e6, 150, 0.02)
		took, _ = Loop(&m, d, 4, 4000, sequential(d.SizeBytes()-4000*256<<10, 256<<10, kind))
		near(t, "inner MB/s, "+kind.String(), 4000*(256<<10)/took.Seconds()/1e6, 75, 0.02)
	}
}

// One read after the other, with time between: the buffer keeps the stream, without it each read loses a turn.
func TestReadAheadKeepsTheStream(t *testing.T) {
	p := HDD7200()
	var m Machine
	d := NewDrive(&m, p, 1)
	took, _ := Loop(&m, d, 1, 4000, sequential(0, 64<<10, Read))
	near(t, "MB/s with read-ahead", 4000*(64<<10)/took.Seconds()/1e6, 150, 0.03)
	Loop(&m, d, 1, 1, sequential(1<<30, 64<<10, Read))
	m.AdvanceTo(m.Now() + 20*time.Millisecond)
	before := d.Stats()
	took, _ = Loop(&m, d, 1, 4, sequential(1<<30+64<<10, 64<<10, Read))
	if st := d.Stats(); st.BufferHits-before.BufferHits != 4 || st.Busy != before.Busy {
		t.Errorf("of 4 reads %d were answered by the buffer, in %v", st.BufferHits-before.BufferHits, took)
	}

	p.ReadAheadBytes = 0
	m = Machine{}
	d = NewDrive(&m, p, 1)
	took, _ = Loop(&m, d, 1, 400, sequential(0, 64<<10, Read))
	near(t, "reads a second without", perSec(400, took), 1/d.g.turn.Seconds(), 0.1)
}

// With the cache off a writer that waits for each write gets one a turn.
func TestWritesWithoutCacheTakeATurnEach(t *testing.T) {
	var m Machine
	d := NewDrive(&m, HDD7200(), 1)
	took, _ := Loop(&m, d, 1, 400, sequential(0, 4096, Write))
	near(t, "writes a second", perSec(400, took), 1/d.g.turn.Seconds(), 0.02)
}

func TestWriteCache(t *testing.T) {
	p := HDD7200()
	p.WriteCacheBytes = 32 << 20
	var m Machine
	d := NewDrive(&m, p, 1)
	took, _ := Loop(&m, d, 1, 1000, sequential(0, 4096, Write))
	if took > time.Second {
		t.Errorf("1000 cached writes took %v", took)
	}
	var flushed time.Duration
	m.Submit(d, &Request{Kind: Flush, Done: func() { flushed = m.Now() }}, m.Now())
	m.Run()
	if flushed == 0 || !d.cache.empty() || d.cache.bytes != 0 {
		t.Errorf("flushed at %v, %+v left", flushed, d.cache)
	}
	fua, _ := Loop(&m, d, 1, 100, func(i int) Request { return Request{Kind: Write, Pos: int64(i) * 4096, Len: 4096, FUA: true} })
	near(t, "FUA writes a second", perSec(100, fua), 1/d.g.turn.Seconds(), 0.05)

	// More than it holds: the medium's speed, but by the nearest of many.
	took, _ = Loop(&m, d, 1, 12000, randomAt(d, 4096, Write, 3))
	t.Logf("random writes beyond the cache: %.0f a second", perSec(12000, took))
	if rate := perSec(12000-8192, took); rate < 100 || rate > 600 {
		t.Errorf("%.0f random writes a second", rate)
	}
}

// The more there is to choose from, the shorter the ways.
func TestDepth(t *testing.T) {
	last := 0.0
	for _, depth := range []int{1, 2, 4, 8, 16, 32} {
		var m Machine
		d := NewDrive(&m, HDD7200(), 1)
		took, latency := Loop(&m, d, depth, 3000, randomAt(d, 4096, Read, 1))
		rate := perSec(3000, took)
		t.Logf("depth %d: %.0f random reads a second", depth, rate)
		if rate < last*1.02 && depth > 2 {
			t.Errorf("depth %d: %.0f a second, half of it gave %.0f", depth, rate, last)
		}
		for _, l := range latency {
			if l > time.Duration(depth+10)*30*time.Millisecond {
				t.Fatalf("depth %d: a read took %v", depth, l)
			}
		}
		last = rate
	}
	if last < 150 || last > 170 {
		t.Errorf("%.0f random reads a second at depth 32", last)
	}
}

// The same seed is the same run, another one another.
func TestSeed(t *testing.T) {
	run := func(seed uint64) time.Duration {
		var m Machine
		d := NewDrive(&m, HDD7200(), seed)
		took, _ := Loop(&m, d, 8, 500, randomAt(d, 4096, Read, seed))
		return took
	}
	first, again, other := run(1), run(1), run(2)
	if first != again || first == other {
		t.Errorf("seed 1: %v and %v, seed 2: %v", first, again, other)
	}
}
