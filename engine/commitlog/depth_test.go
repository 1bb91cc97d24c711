package commitlog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDepths(t *testing.T) {
	var d Depths
	for _, n := range []int{1, 1, 2, 3, 4, 5, 64, 65, 1000} {
		d.note(n)
	}
	want := DepthStats{Writes: 9, Batches: 1145, AtMost: map[uint64]uint64{1: 2, 2: 3, 4: 5, 8: 6, 16: 6, 32: 6, 64: 7}}
	if diff := cmp.Diff(want, d.Stats()); diff != "" {
		t.Error(diff)
	}
	(*Depths)(nil).note(3) // a log that nobody counts
}
