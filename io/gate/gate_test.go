package gate

import (
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// eventually waits for what other goroutines bring about.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(60 * time.Second); !is(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func fill(g *Gate, side Side) (n int) {
	for g.TryEnter(side) {
		n++
	}
	return n
}

func TestNeitherSideHasAllPlaces(t *testing.T) {
	for _, side := range []Side{Read, Write} {
		g := New("d", 64)
		if n := fill(g, side); n != 48 {
			t.Errorf("side %d alone got %d of 64 places", side, n)
		}
		if n := fill(g, 1-side); n != 16 {
			t.Errorf("side %d got %d of the 16 that were left", 1-side, n)
		}
	}
	if n := New("d", 0).Places(); n != 4 {
		t.Errorf("the smallest gate has %d places", n)
	}
}

// TestFirstComeFirstServedAndInTurn: within a side by arrival, between the sides in turn.
func TestFirstComeFirstServedAndInTurn(t *testing.T) {
	g := New("d", 4)
	fill(g, Read)
	fill(g, Write)
	var mu sync.Mutex
	var order []int
	wait := func(id int, side Side) {
		before := g.Stats().Waiting
		go func() {
			g.Enter(side)
			mu.Lock()
			order = append(order, id)
			mu.Unlock()
		}()
		eventually(t, "a waiter more", func() bool { return g.Stats().Waiting == before+1 })
	}
	for i := range 5 {
		wait(i, Read)
	}
	for i := range 3 {
		wait(100+i, Write)
	}
	// Three reads and one write are inside. The writes wait for a place, the reads for one of theirs.
	for i := range 8 {
		g.Leave([]Side{Read, Read, Read, Write, Write, Write, Read, Read}[i])
		eventually(t, "somebody got in", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == i+1 })
	}
	reads, writes := 0, 0
	for i, id := range order {
		switch {
		case id < 100 && id != reads, id >= 100 && id != 100+writes:
			t.Fatalf("order %v", order)
		case id < 100:
			reads++
		default:
			writes++
		}
		if i == 3 && (reads == 0 || writes == 0) {
			t.Errorf("one side waited for all of the other: %v", order)
		}
	}
	if st := g.Stats(); st.Waiting != 0 || st.Waited != 8 || st.Longest <= 0 {
		t.Errorf("%+v", st)
	}
}

func TestNeverMoreThanPlaces(t *testing.T) {
	g := New("d", 8)
	var in, most [sideCount]atomic.Int64
	var all, allMost atomic.Int64
	raise := func(most *atomic.Int64, n int64) {
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			side := Side(i % 2)
			for range 500 {
				g.Enter(side)
				raise(&most[side], in[side].Add(1))
				raise(&allMost, all.Add(1))
				runtime.Gosched()
				in[side].Add(-1)
				all.Add(-1)
				g.Leave(side)
			}
		})
	}
	wg.Wait()
	if most[Read].Load() > 6 || most[Write].Load() > 6 || allMost.Load() > 8 {
		t.Errorf("at once: %d reads, %d writes, %d in all", most[Read].Load(), most[Write].Load(), allMost.Load())
	}
	if st := g.Stats(); st.Inside != 0 || st.Waiting != 0 {
		t.Errorf("left behind: %+v", st)
	}
	if s := g.state.Load(); s != 0 {
		t.Errorf("state %x", s)
	}
}

func TestStalledIsSinceTheLastOneCameOut(t *testing.T) {
	g := New("d", 4)
	if st := g.Stats(); st.Stalled != 0 {
		t.Errorf("an empty gate is stalled for %v", st.Stalled)
	}
	g.Enter(Read)
	eventually(t, "stalled", func() bool { return g.Stats().Stalled > time.Millisecond })
	g.Leave(Read)
	if st := g.Stats(); st.Stalled != 0 || st.Inside != 0 {
		t.Errorf("%+v", st)
	}
}

func TestSetFindsTheNearestRoot(t *testing.T) {
	var s Set
	a, b := New("a", 4), New("b", 4)
	dir := t.TempDir()
	s.Add(filepath.Join(dir, "d1"), a)
	s.Add(filepath.Join(dir, "d1", "inner")+"/", b)
	s.Add("relative", b)
	abs, err := filepath.Abs("relative/x")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]*Gate{
		filepath.Join(dir, "d1"):            a,
		filepath.Join(dir, "d1", "t-0"):     a,
		filepath.Join(dir, "d1", "inner"):   b,
		filepath.Join(dir, "d1", "inner/x"): b,
		filepath.Join(dir, "d12"):           s.For("/elsewhere"),
		filepath.Join("relative", "t-0"):    b,
		abs:                                 b,
		"":                                  s.For("/elsewhere"),
	} {
		if got := s.For(path); got != want {
			t.Errorf("%q goes through %q, want %q", path, got.Name(), want.Name())
		}
	}
	s.Add(filepath.Join(dir, "d1"), b)
	if got := s.For(filepath.Join(dir, "d1", "x")); got != b {
		t.Errorf("a root that moved goes through %q", got.Name())
	}
	if st := s.Stats(); len(st) != 2 || st[0].Name != "b" || st[1].Name != "other" {
		t.Errorf("%+v", st)
	}
}

func TestDirectoriesOfOneDeviceShareAGate(t *testing.T) {
	var s Set
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a", "missing"), filepath.Join(dir, "b")
	s.AddDevices(12, a, b)
	if g := s.For(filepath.Join(a, "x")); g != s.For(b) || g.Places() != 12 || g.Name() != a {
		t.Errorf("%s with %d places", g.Name(), g.Places())
	}
	var d Set
	d.AddDevices(0, dir)
	if n := d.For(dir).Places(); n != PlacesDefault {
		t.Errorf("%d places by default", n)
	}
}

func BenchmarkUncontended(b *testing.B) {
	g := New("d", 64)
	b.ReportAllocs()
	for b.Loop() {
		g.Enter(Read)
		g.Leave(Read)
	}
}

func BenchmarkFor(b *testing.B) {
	var s Set
	for _, p := range []string{"/data/1", "/data/2", "/data/3", "/data/4"} {
		s.Add(p, New(p, 4))
	}
	for b.Loop() {
		s.For("/data/1/topic-0/00000000000000000000.log")
	}
}

func BenchmarkContended(b *testing.B) {
	g := New("d", 8)
	b.SetParallelism(64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			g.Enter(Read)
			g.Leave(Read)
		}
	})
}
