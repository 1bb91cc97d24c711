package hddsim

import (
	"math/rand/v2"
	"slices"
	"time"

	"platter/io/invariant"
)

// Drive is one spinning disk: one arm, one command at a time on the medium, a queue to choose from, a buffer that is
// read ahead into, and perhaps a write cache. It implements Device.
type Drive struct {
	m     *Machine
	g     *geometry
	stats Stats

	queue   []*Request // that need the medium, oldest first
	busy    bool
	track   int64 // where the head stands
	buffer  []segment
	ahead   stream // fills buffer[0] while on
	cache   writeCache
	flushes []flushing
}

// segment is a part of the buffer: the last bytes of one stream.
type segment struct{ from, to int64 }

// stream is a read-ahead under way: at since the head was at from, and it stops at limit.
type stream struct {
	on          bool
	from, limit int64
	since       time.Duration
}

type flushing struct {
	r    *Request
	upTo uint64 // entries of the write cache
}

// NewDrive returns a drive with its arm at the first track. The seed is the platter's angle at time 0.
func NewDrive(m *Machine, p DriveParams, seed uint64) *Drive {
	invariant.Check(p.RPM > 0 && p.Zones > 0 && p.Heads > 0 && p.QueueDepth > 0, "bad drive %+v", p)
	phase := rand.New(rand.NewPCG(seed, 1)).Float64()
	return &Drive{m: m, g: newGeometry(p, phase)}
}

// SizeBytes is the drive's capacity.
func (d *Drive) SizeBytes() int64 { return d.g.size }

// Stats is what it has done.
func (d *Drive) Stats() Stats { return d.stats }

// Params are what it was made with.
func (d *Drive) Params() DriveParams { return d.g.p }

// Turn is the time of one revolution.
func (d *Drive) Turn() time.Duration { return d.g.turn }

// Submit queues a request.
func (d *Drive) Submit(r *Request) {
	invariant.Check(r.Kind == Flush || r.Len > 0 && r.Pos >= 0 && r.end() <= d.g.size,
		"%v of %d at %d, on %d bytes", r.Kind, r.Len, r.Pos, d.g.size)
	d.stats.count(r)
	d.m.After(d.g.p.CommandOverhead, func() { d.arrive(r) })
}

func (d *Drive) arrive(r *Request) {
	r.at = d.m.now
	switch {
	case r.Kind == Flush && d.cache.empty():
		r.Done()
		return
	case r.Kind == Flush:
		d.flushes = append(d.flushes, flushing{r, d.cache.made})
		d.next()
		return
	case r.Kind == Read && d.buffered(r):
		d.stats.BufferHits++
		d.doneAfterInterface(r)
		return
	case r.Kind == Write:
		d.forget(r)
		if !r.FUA && d.cache.take(r, d.g.p.WriteCacheBytes) {
			d.doneAfterInterface(r)
			d.next()
			return
		}
	}
	d.queue = append(d.queue, r)
	d.next()
}

func (d *Drive) doneAfterInterface(r *Request) {
	d.m.After(over(r.Len, d.g.p.InterfaceBytesPerSec), r.Done)
}

// buffered reports whether all of a read has passed under the head already.
func (d *Drive) buffered(r *Request) bool {
	for i, s := range d.buffer {
		if i == 0 {
			s.to = d.readTo()
		}
		if r.Pos >= s.from && r.end() <= s.to {
			return true
		}
	}
	return false
}

// readTo is how far the newest segment has got by now.
func (d *Drive) readTo() int64 {
	if !d.ahead.on {
		if len(d.buffer) == 0 {
			return 0
		}
		return d.buffer[0].to
	}
	return min(d.ahead.from+d.g.reached(d.ahead.from, d.m.now-d.ahead.since), d.ahead.limit)
}

// stopAhead leaves the stream, for another place.
func (d *Drive) stopAhead() {
	if d.ahead.on {
		d.buffer[0].to = d.readTo()
		d.track = d.g.place(min(d.buffer[0].to, d.g.size-1)).track
		d.ahead.on = false
	}
}

// forget drops what the buffer holds of a range that is written.
func (d *Drive) forget(r *Request) {
	overlaps := func(s segment) bool { return s.from < r.end() && r.Pos < s.to }
	if d.ahead.on && overlaps(segment{d.buffer[0].from, d.ahead.limit}) {
		d.stopAhead()
	}
	d.buffer = slices.DeleteFunc(d.buffer, overlaps)
}

// continues reports whether a read goes on where the read-ahead is.
func (d *Drive) continues(r *Request) bool {
	return d.ahead.on && r.Kind == Read && r.Pos >= d.buffer[0].from && r.Pos <= d.ahead.limit && r.end() > d.buffer[0].from
}

// next starts on the best command there is, when the arm is free.
func (d *Drive) next() {
	if d.busy {
		return
	}
	at, i := d.choose()
	switch at {
	case fromQueue:
		r := d.queue[i]
		d.queue = slices.Delete(d.queue, i, i+1)
		if d.continues(r) {
			d.goOn(r)
		} else {
			d.stopAhead()
			d.work(r.Kind == Write, r.Pos, r.Len, func() { d.finish(r) })
		}
	case fromCache:
		e := d.cache.entries[i]
		d.cache.entries = slices.Delete(d.cache.entries, i, i+1)
		d.stopAhead()
		d.cache.writing = &e
		d.work(true, e.pos, e.len, d.cached)
	}
}

type source int

const (
	nothing source = iota
	fromQueue
	fromCache
)

// cacheChoice is how many entries of the write cache are looked at for the nearest.
const cacheChoice = 64

// choose picks the command that the head reaches first, with some patience taken off for each moment that it has waited
// (aged shortest time first: Jacobson and Wilkes, "Disk scheduling algorithms based on rotational position", 1991), so
// that one stream does not keep the arm from all others. What is in the write cache comes last, unless room or a flush is
// wanted.
func (d *Drive) choose() (from source, index int) {
	track := d.track
	if d.ahead.on {
		track = d.g.place(min(d.readTo(), d.g.size-1)).track
	}
	best := time.Duration(1<<63 - 1)
	try := func(s source, i int, cost time.Duration) {
		if cost < best {
			best, from, index = cost, s, i
		}
	}
	reach := func(pos int64, write bool) time.Duration {
		seek, wait := d.g.approach(d.m.now, track, pos, write)
		return seek + wait
	}
	for i, r := range d.queue[:min(len(d.queue), d.g.p.QueueDepth)] {
		cost := -time.Duration(d.g.p.Aging * float64(d.m.now-r.at))
		if !d.continues(r) {
			cost += reach(r.Pos, r.Kind == Write)
		}
		try(fromQueue, i, cost)
	}
	if len(d.queue) == 0 || len(d.flushes) > 0 || d.cache.tight(d.g.p.WriteCacheBytes) {
		for i, e := range d.cache.entries[:min(len(d.cache.entries), cacheChoice)] {
			try(fromCache, i, reach(e.pos, true))
		}
	}
	return from, index
}

// work moves the head to a range and over it, then calls done.
func (d *Drive) work(write bool, pos, n int64, done func()) {
	seek, wait := d.g.approach(d.m.now, d.track, pos, write)
	t := seek + wait + d.g.transfer(pos, n)
	d.stats.Seeking += seek
	d.stats.Rotating += wait
	d.hold(t, pos+n, done)
}

func (d *Drive) hold(t time.Duration, end int64, done func()) {
	d.stats.Busy += t
	d.busy = true
	d.m.After(t, func() {
		d.busy = false
		d.track = d.g.place(end - 1).track
		done()
	})
}

// goOn serves a read from the stream that is under way: no seek, and as a rule no wait.
func (d *Drive) goOn(r *Request) {
	a := d.ahead
	ready := a.since + d.g.transfer(a.from, max(0, r.end()-a.from))
	if stopped := a.since + d.g.transfer(a.from, a.limit-a.from); r.end() > a.limit && d.m.now > stopped {
		// The buffer was full, the platter went on: wait for the place to come round.
		seek, wait := d.g.approach(d.m.now, d.g.place(min(a.limit, d.g.size-1)).track, a.limit, false)
		d.stats.Seeking += seek
		d.stats.Rotating += wait
		ready = d.m.now + seek + wait + d.g.transfer(a.limit, r.end()-a.limit)
	}
	d.ahead.on = false
	d.buffer[0].to = max(d.buffer[0].to, r.end())
	if ready <= d.m.now {
		d.ahead = a
		d.doneAfterInterface(r)
		d.next()
		return
	}
	d.hold(ready-d.m.now, r.end(), func() { d.finishStream(r) })
}

// finish ends a command that came to the medium by its own seek.
func (d *Drive) finish(r *Request) {
	if r.Kind == Read && d.g.p.ReadAheadBytes > 0 {
		d.buffer = slices.Insert(d.buffer, 0, segment{r.Pos, r.end()})
		d.buffer = d.buffer[:min(len(d.buffer), max(1, d.g.p.Segments))]
	}
	d.finishStream(r)
}

func (d *Drive) finishStream(r *Request) {
	if r.Kind == Read && len(d.buffer) > 0 && d.buffer[0].to == r.end() {
		most := d.g.p.ReadAheadBytes
		d.buffer[0].from = max(d.buffer[0].from, r.end()-most)
		d.ahead = stream{true, r.end(), min(r.end()+most, d.g.size), d.m.now}
	}
	d.next()
	r.Done()
}
