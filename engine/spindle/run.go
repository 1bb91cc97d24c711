package spindle

import (
	"sync"

	"platter/engine/spindle/lane"
	"platter/io/disk"
)

const (
	// adviseBytes is what one advice asks for: Linux cuts longer ones down to the device's readahead, which is 128 KiB
	// unless somebody has changed it (mm/readahead.c, force_page_cache_ra).
	adviseBytes = 128 << 10
	// fillBytes is one read of a run where advice does not reach the kernel.
	fillBytes = 1 << 20
)

var fills = sync.Pool{New: func() any { b := make([]byte, fillBytes); return &b }}

// read brings a run into the page cache, or into chunks, and returns how much of it is there. sent is called once all
// of it is on its way.
func (sp *Spindle) read(t *tracked, r lane.Run, sent func()) (chunks []*chunk, got int64) {
	pos, n := r.Pos, r.N
	path := t.name()
	if path == "" {
		return nil, 0
	}
	f, err := sp.fs.Open(path, disk.ReadOnly)
	if err != nil {
		return nil, 0
	}
	defer f.Close()
	switch {
	case sp.p.Buffers:
		return sp.readChunks(f, r, sent)
	case sp.fs.Caps(path).Advise:
		return nil, sp.readAhead(f, r, sent)
	}
	buf := fills.Get().(*[]byte)
	defer fills.Put(buf)
	for got < n {
		m, err := f.ReadAt((*buf)[:min(n-got, fillBytes)], pos+got)
		got += int64(m)
		if err != nil {
			break
		}
	}
	return nil, got
}

// readAhead has the kernel read a run by itself, FlightBytes of it at a time: the next part is on its way before the last
// one is there, so the device streams, but for gentle runs. A part is waited for with one byte out of it.
func (sp *Spindle) readAhead(f disk.File, r lane.Run, sent func()) (got int64) {
	var one [1]byte
	for asked := int64(0); got < r.N; {
		if !r.Gentle || got == asked {
			for ; asked < min(r.N, got+sp.p.FlightBytes); asked += adviseBytes {
				if f.Advise(r.Pos+asked, min(adviseBytes, r.N-asked), disk.WillNeed) != nil {
					return got
				}
			}
			asked = min(asked, r.N)
			if asked == r.N && got < r.N && !r.Gentle {
				sent()
			}
		}
		step := min(adviseBytes, asked-got)
		if m, _ := f.ReadAt(one[:], r.Pos+got+step-1); m == 0 {
			break
		}
		got += step
	}
	return got
}

// drop gives the pages of a range back to the kernel.
func (t *tracked) drop(fs disk.FS, pos, n int64) {
	path := t.name()
	if path == "" {
		return
	}
	f, err := fs.Open(path, disk.ReadOnly)
	if err != nil {
		return
	}
	_ = f.Advise(pos, n, disk.DontNeed) // a hint: the kernel evicts by itself, later
	f.Close()
}
