package commitlog

import (
	"math/bits"
	"sync/atomic"
)

// depthBounds are 1, 2, 4, … 64 batches, and more.
const depthBounds = 8

// Depths counts the vectored writes of many logs by how many batches each took: the depth that coalescing
// really reaches. The zero value is ready; safe for concurrent use.
type Depths struct {
	writes  [depthBounds]atomic.Uint64 // of at most 1, of 2, of 3 to 4, …
	batches atomic.Uint64
}

// DepthStats is the count so far.
type DepthStats struct {
	Writes  uint64            // vectored writes
	Batches uint64            // batches in them
	AtMost  map[uint64]uint64 // 1, 2, 4, … 64: writes of at most so many batches
}

func (d *Depths) note(batches int) {
	if d == nil {
		return
	}
	d.writes[min(bits.Len(uint(batches-1)), depthBounds-1)].Add(1)
	d.batches.Add(uint64(batches))
}

// Stats reads the counts.
func (d *Depths) Stats() DepthStats {
	s := DepthStats{Batches: d.batches.Load(), AtMost: map[uint64]uint64{}}
	for i := range d.writes {
		s.Writes += d.writes[i].Load()
		if i < depthBounds-1 {
			s.AtMost[1<<i] = s.Writes
		}
	}
	return s
}
