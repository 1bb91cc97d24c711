package tree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestChildren compares with a map over random changes, and makes sure that what was captured stays.
func TestChildren(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var c *children
		want := map[string]*node{}
		gen := uint64(0)
		var captured *children
		var then map[string]*node
		span := 1 + r.IntN(3000)
		for step := range 6000 {
			name := fmt.Sprint("n", r.IntN(span))
			if rising := step/1500%2 == 0; r.IntN(10) < 7 == rising {
				n := &node{name: name}
				c = c.put(gen, n)
				want[name] = n
			} else {
				c = c.remove(gen, name)
				delete(want, name)
			}
			if step%1000 == 0 {
				if captured != nil {
					same(t, captured, then)
				}
				captured, then = c, maps.Clone(want)
				gen++
			}
			if c.len() != len(want) || c.get(name) != want[name] {
				t.Fatalf("seed %d, step %d: %d children, want %d", seed, step, c.len(), len(want))
			}
		}
		same(t, c, want)
		same(t, captured, then)
	}
}

func same(t *testing.T, c *children, want map[string]*node) {
	t.Helper()
	names := slices.Sorted(maps.Keys(want))
	nodes := c.sorted()
	if len(nodes) != len(names) || c.len() != len(names) {
		t.Fatalf("%d children (counted: %d), want %d", len(nodes), c.len(), len(names))
	}
	for i, n := range nodes {
		if n.name != names[i] || n != want[n.name] || c.get(n.name) != n {
			t.Fatalf("%s is not what was put there", names[i])
		}
	}
}
