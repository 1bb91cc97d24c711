package hddsim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Sets of pages, extents and free room against dumb twins that know each page.
func TestRunsAgainstTwin(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const size = 120
		var s runs
		var twin [size]bool
		for range 300 {
			r := span{rng.Int64N(size), 0}
			r.len = rng.Int64N(size - r.pos + 1)
			add, changed := rng.IntN(2) == 0, int64(0)
			for p := r.pos; p < r.end(); p++ {
				if twin[p] != add {
					changed++
				}
				twin[p] = add
			}
			var got int64
			switch {
			case r.len == 0:
			case add:
				got = s.add(r)
			default:
				got = s.remove(r)
			}
			if got != changed {
				t.Fatalf("seed %d: %+v (add %v) changed %d pages, the twin %d; %v", seed, r, add, got, changed, s)
			}
			checkRuns(t, s, twin[:])
		}
	}
}

func checkRuns(t *testing.T, s runs, twin []bool) {
	t.Helper()
	for i := 1; i < len(s); i++ {
		if s[i-1].end() >= s[i].pos {
			t.Fatalf("runs adjoin or overlap: %v", s)
		}
	}
	for p := range int64(len(twin)) {
		next := slices.Index(twin[p:], true)
		r, ok := s.from(p, int64(len(twin)))
		if ok != (next >= 0) || ok && r.pos != p+int64(next) {
			t.Fatalf("from %d comes %+v, %v; the twin has one in %d; %v", p, r, ok, next, s)
		}
	}
}

func TestSpaceAgainstTwin(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		const size = 64 * pageBytes
		s := newSpace(size)
		var held []span
		for range 400 {
			if i := rng.IntN(len(held) + 1); i < len(held) && rng.IntN(2) == 0 {
				s.give(held[i])
				held = slices.Delete(held, i, i+1)
			} else {
				goal := int64(-1)
				if rng.IntN(2) == 0 {
					goal = rng.Int64N(64) * pageBytes
				}
				got, ok := s.take(goal, (1+rng.Int64N(20))*pageBytes)
				if ok != (s.left+got.len > 0) {
					t.Fatalf("seed %d: took %+v, %v, with %d left", seed, got, ok, s.left)
				}
				if ok {
					held = append(held, got)
				}
			}
			var twin [64]int
			left := int64(64)
			for _, h := range held {
				for p := h.pos; p < h.end(); p += pageBytes {
					twin[p/pageBytes]++
					left--
				}
			}
			if slices.Max(twin[:]) > 1 || left*pageBytes != s.left {
				t.Fatalf("seed %d: %v pages are held, %d bytes left", seed, twin, s.left)
			}
		}
		for _, h := range held {
			s.give(h)
		}
		if len(s.free) != 1 || s.free[0] != (span{0, size}) {
			t.Fatalf("seed %d: all was given back, and free is %v", seed, s.free)
		}
	}
}

func TestLayoutAgainstTwin(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		const pages = 80
		var l layout
		var twin [pages]int64 // device page, -1 in a hole
		for i := range twin {
			twin[i] = -1
		}
		for range 200 {
			if rng.IntN(10) == 0 {
				size := rng.Int64N(pages)
				var freed int64
				for _, f := range l.cutTo(size * pageBytes) {
					freed += f.len / pageBytes
				}
				for p := size; p < pages; p++ {
					if twin[p] >= 0 {
						freed--
					}
					twin[p] = -1
				}
				if freed != 0 {
					t.Fatalf("seed %d: cut to %d frees %d pages too many", seed, size, freed)
				}
			}
			at := rng.Int64N(pages)
			dev := rng.Int64N(1000)
			n := int64(0)
			for at+n < pages && twin[at+n] < 0 && n < 9 {
				twin[at+n] = dev + n
				n++
			}
			if n > 0 {
				l.put(extent{span{at * pageBytes, n * pageBytes}, dev * pageBytes})
			}
			p := int64(0)
			l.pieces(span{0, pages * pageBytes}, func(part span, dev int64) {
				if part.pos != p*pageBytes || part.len <= 0 {
					t.Fatalf("seed %d: piece %+v at page %d; %v", seed, part, p, l)
				}
				for i := int64(0); i < part.len/pageBytes; i++ {
					want := dev
					if dev >= 0 {
						want = dev/pageBytes + i
					}
					if twin[p] != want {
						t.Fatalf("seed %d: page %d is at %d, the twin has it at %d", seed, p, want, twin[p])
					}
					p++
				}
			})
			if p != pages {
				t.Fatalf("seed %d: the pieces end at page %d", seed, p)
			}
		}
	}
}
