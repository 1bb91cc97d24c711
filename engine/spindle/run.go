package spindle

import (
	"sync"
	"time"

	"platter/engine/spindle/lane"
	"platter/io/disk"
)

const (
	// adviseBytes is what one advice is sure to bring: Linux cuts longer ones down to the device's readahead or largest
	// request, whichever is more (mm/readahead.c, force_page_cache_ra), and the former is 128 KiB unless somebody has changed it.
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

// readAhead has the kernel read a run by itself, FlightBytes of it at a time: the next part is asked for when half of that is there,
// so the device streams, but for gentle runs. A part is waited for with one byte out of it.
func (sp *Spindle) readAhead(f disk.File, r lane.Run, sent func()) (got int64) {
	var one [1]byte
	left := sp.p.FlightBytes / 2 // on its way when more is asked for
	if r.Gentle {
		left = 0
	}
	ask := advisor{f: f, step: sp.p.FlightBytes}
	for asked := int64(0); got < r.N; {
		if to := min(r.N, got+sp.p.FlightBytes); asked < to && asked-got <= left {
			if r.Gentle {
				sp.yield()
			}
			if ask.willNeed(r.Pos+asked, to-asked) != nil {
				return got
			}
			if asked = to; asked == r.N && !r.Gentle {
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

const (
	// An append takes microseconds; where none has ended for yieldStep though one is under way, it waits for the disk.
	yieldStep = time.Millisecond
	yieldMax  = 100 * time.Millisecond
)

// yield leaves the device to those whom an append waits for, such as a journal's commit: it takes several short writes, one after the
// other, and each would find a part of the run before it.
func (sp *Spindle) yield() {
	for waited := time.Duration(0); waited < yieldMax; waited += yieldStep {
		ended := sp.ended.Load()
		if sp.begun.Load() == ended {
			return
		}
		<-sp.clock.After(yieldStep)
		if sp.ended.Load() != ended {
			return
		}
	}
}

// advisor asks the kernel to read ahead in as few pieces as it allows: each is a request to the device, and what comes as
// many short ones costs more of the processor, and turns of the disk where the queue swaps them.
type advisor struct {
	f    disk.File
	step int64 // the kernel has not shown that it takes less at a time
}

// willNeed asks for [pos, pos+n).
func (a *advisor) willNeed(pos, n int64) error {
	for end := pos + n; pos < end; {
		step := min(a.step, end-pos)
		if err := a.f.Advise(pos, step, disk.WillNeed); err != nil {
			return err
		}
		if step > adviseBytes {
			have, err := a.f.Resident(pos, step) // pages on their way count
			if err != nil {
				have = 0
			}
			if have < step {
				step = max(have/adviseBytes, 1) * adviseBytes
				a.step = step
			}
		}
		pos += step
	}
	return nil
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
