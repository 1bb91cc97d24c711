package iobench

import (
	"platter/io/backend"
	"platter/io/disk"
)

// Calls is what one run asked of the kernel. Sends by sendfile and splice are in none of them.
type Calls struct {
	Rounds  int   `json:"rounds"`
	Reads   int64 `json:"reads"`    // read, pread, preadv
	Writes  int64 `json:"writes"`   // write, pwrite, pwritev
	RingOps int64 `json:"ring_ops"` // operations that went through a ring
}

// ringed is a load that may use a ring.
type ringed interface{ backend() disk.FS }

func ringOps(l load) int64 {
	if r, ok := l.(ringed); ok {
		if s, ok := backend.Rings(r.backend()); ok {
			return int64(s.Ops)
		}
	}
	return 0
}

// countCalls runs the load once more, unmeasured, to count; nil where the system does not tell.
func countCalls(l load, rounds int) (*Calls, error) {
	ops := ringOps(l)
	reads, writes, ok := ioCounts()
	if !ok {
		return nil, nil
	}
	if err := l.run(newMeter(), rounds); err != nil {
		return nil, err
	}
	r, w, _ := ioCounts()
	return &Calls{Rounds: rounds, Reads: r - reads, Writes: w - writes, RingOps: ringOps(l) - ops}, nil
}

// same tells whether both ask the same of the kernel, but for what the Go runtime does in between.
func (c *Calls) same(d *Calls) bool {
	near := func(a, b int64) bool { return max(a, b)-min(a, b) <= 16+max(a, b)/50 }
	return near(c.Reads, d.Reads) && near(c.Writes, d.Writes) && c.RingOps == d.RingOps
}
