package heap

import "testing"

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 8 << 20: 200, 16 << 20: 100, 32 << 20: 50, 1 << 30: 50} {
		if got := percent(live); got != want {
			t.Errorf("%d bytes: %d%%, want %d%%", live, got, want)
		}
	}
}

// TestLook: memory is given back once it is quiet, once, and not while there is work.
func TestLook(t *testing.T) {
	k := keeper{}
	busy := sizes{live: 50 << 20, held: 100 << 20, allocs: 1 << 30}
	for i, step := range []struct {
		sizes
		free bool
	}{
		{busy, false},
		{sizes{live: 50 << 20, held: 100 << 20, allocs: 2 << 30}, false},
		{sizes{live: 50 << 20, held: 100 << 20, allocs: 2<<30 + 100}, true},
		{sizes{live: 50 << 20, held: 100 << 20, allocs: 2<<30 + 200}, false},
		{sizes{live: 2 << 20, held: 80 << 20, allocs: 2<<30 + 300}, false},
		{sizes{live: 2 << 20, held: 80 << 20, allocs: 2<<30 + 400}, false},
		{sizes{live: 2 << 20, held: 80 << 20, allocs: 3 << 30}, false},
		{sizes{live: 2 << 20, held: 80 << 20, allocs: 3<<30 + 100}, true},
		{sizes{live: 2 << 20, held: 8 << 20, allocs: 2<<30 + 500}, false},
	} {
		if _, free := k.look(step.sizes); free != step.free {
			t.Errorf("step %d: free %v, want %v", i, free, step.free)
		}
	}
	if read().held == 0 {
		t.Error("the runtime says nothing of itself")
	}
}
