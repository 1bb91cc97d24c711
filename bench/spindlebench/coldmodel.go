package spindlebench

import (
	"fmt"
	"time"

	"platter/engine/spindle"
	"platter/io/hddsim"
)

// Load is what one situation puts on the disk.
type Load struct {
	Name    string
	Readers int  // of cold data, each of a file of its own
	Lane    bool // they go through the lane, else each sends for itself
	Buffers bool // the lane reads into buffers, not into the page cache
	Tail    bool // an appender and a reader at its heels
}

// ColdModel is a modelled cold bench.
type ColdModel struct {
	Device      string
	Make        Maker // makes the device instead, where it is given
	Seed        uint64
	Span        time.Duration // of virtual time that is measured
	WarmUp      time.Duration
	FileBytes   int64 // of each cold file
	TailRate    int64 // bytes a second of the appender
	BatchBytes  int64
	MemoryBytes int64 // of the page cache
	Params      spindle.Params
}

// DefaultColdModel is a device of Devices, and a machine with 8 GiB.
func DefaultColdModel(device string) ColdModel {
	return ColdModel{
		Device: device, Seed: 1, Span: 90 * time.Second, WarmUp: 15 * time.Second, FileBytes: 32 << 30,
		TailRate: 20e6, BatchBytes: 64 << 10, MemoryBytes: 8 << 30, Params: ParamsOf(device, 1<<30),
	}
}

// Run plays one situation.
func (c ColdModel) Run(l Load) (Figures, error) {
	vp := hddsim.DefaultVolume()
	scale := float64(c.MemoryBytes) / float64(vp.MemoryBytes)
	vp.MemoryBytes = c.MemoryBytes
	vp.DirtyBytes, vp.BackgroundBytes = int64(scale*float64(vp.DirtyBytes)), int64(scale*float64(vp.BackgroundBytes))
	p := c.Params
	p.Buffers = l.Buffers
	w, err := newWorld(c.Device, c.Make, c.Seed, vp, p)
	if err != nil {
		return Figures{}, err
	}
	end := c.WarmUp + c.Span
	over := func() bool { return w.m.Now() >= end }
	var readers []*reader
	for range l.Readers {
		id, err := w.place(c.FileBytes)
		if err != nil {
			return Figures{}, fmt.Errorf("%d files of %d bytes: %w", l.Readers, c.FileBytes, err)
		}
		r := &reader{w: w, id: id, laned: l.Lane, stop: over}
		readers = append(readers, r)
		w.m.After(0, r.fetch)
	}
	var t *tail
	if l.Tail {
		t = newTail(w, c.TailRate, c.BatchBytes, over)
		w.m.After(0, t.tick)
	}
	taken := func() (n int64) {
		for _, r := range readers {
			n += r.taken
		}
		return n
	}
	w.m.AdvanceTo(c.WarmUp)
	before := taken()
	if t != nil {
		t.appends, t.reads = t.appends[:0], t.reads[:0]
	}
	w.m.AdvanceTo(end)
	f := Figures{Load: l, BytesPerSec: float64(taken()-before) / c.Span.Seconds(), Lane: w.lane.Stats()}
	if t != nil {
		f.Append, f.TailRead = quantiles(t.appends), quantiles(t.reads)
	}
	for _, r := range readers {
		f.Least = min(f.Least, r.taken)
		if f.Least == 0 {
			f.Least = r.taken
		}
		f.Most = max(f.Most, r.taken)
	}
	return f, nil
}
