package hddsim

import (
	"time"

	"platter/io/invariant"
)

// SSDParams describe a disk without a head: every place is as near as any other.
type SSDParams struct {
	CapacityBytes    int64
	Channels         int // requests worked on at once
	ReadLatency      time.Duration
	WriteLatency     time.Duration
	ReadBytesPerSec  int64
	WriteBytesPerSec int64
	FlushLatency     time.Duration
}

// SSD is a disk of channels behind one bus. It implements Device.
type SSD struct {
	m     *Machine
	p     SSDParams
	stats Stats
	free  []time.Duration // when each channel is
	bus   time.Duration   // when it is free
	last  time.Duration   // when the last write is done
}

// NewSSD returns an idle one.
func NewSSD(m *Machine, p SSDParams) *SSD {
	invariant.Check(p.Channels > 0 && p.ReadBytesPerSec > 0 && p.WriteBytesPerSec > 0, "bad SSD %+v", p)
	return &SSD{m: m, p: p, free: make([]time.Duration, p.Channels)}
}

// SizeBytes is its capacity.
func (d *SSD) SizeBytes() int64 { return d.p.CapacityBytes }

// Stats is what it has done.
func (d *SSD) Stats() Stats { return d.stats }

// Submit takes the first free channel, then the bus.
func (d *SSD) Submit(r *Request) {
	d.stats.count(r)
	if r.Kind == Flush {
		d.m.At(max(d.m.now, d.last)+d.p.FlushLatency, r.Done)
		return
	}
	latency, rate := d.p.ReadLatency, d.p.ReadBytesPerSec
	if r.Kind == Write {
		latency, rate = d.p.WriteLatency, d.p.WriteBytesPerSec
	}
	c := 0
	for i, t := range d.free {
		if t < d.free[c] {
			c = i
		}
	}
	ready := max(d.m.now, d.free[c]) + latency
	done := max(ready, d.bus) + over(r.Len, rate)
	d.free[c], d.bus = done, done
	d.stats.Busy += over(r.Len, rate)
	if r.Kind == Write {
		d.last = max(d.last, done)
	}
	d.m.At(done, r.Done)
}

// ThrottleParams are the kernel's own throttle of a device (io.max of cgroups): so many operations a second, reads and
// writes by themselves.
type ThrottleParams struct {
	CapacityBytes int64
	OpsPerSec     int64
	BytesPerSec   int64 // of both together, besides
}

// Throttle is a device that counts operations and cannot tell sequential from random. It implements Device.
type Throttle struct {
	m     *Machine
	p     ThrottleParams
	stats Stats
	free  [2]time.Duration
	bus   time.Duration
}

// NewThrottle returns an idle one.
func NewThrottle(m *Machine, p ThrottleParams) *Throttle {
	invariant.Check(p.OpsPerSec > 0 && p.BytesPerSec > 0, "bad throttle %+v", p)
	return &Throttle{m: m, p: p}
}

// SizeBytes is its capacity.
func (d *Throttle) SizeBytes() int64 { return d.p.CapacityBytes }

// Stats is what it has done.
func (d *Throttle) Stats() Stats { return d.stats }

// Submit waits for the next slot of its kind.
func (d *Throttle) Submit(r *Request) {
	done := func() {
		d.stats.count(r)
		r.Done()
	}
	if r.Kind == Flush {
		d.m.At(max(d.m.now, d.free[Write]), done)
		return
	}
	slot := max(d.m.now, d.free[r.Kind]) + time.Second/time.Duration(d.p.OpsPerSec)
	d.free[r.Kind] = slot
	d.bus = max(d.bus, d.m.now) + over(r.Len, d.p.BytesPerSec)
	d.m.At(max(slot, d.bus), done)
}
