package hddsim

import (
	"iter"
	"math/rand/v2"
	"time"
)

// Actor is a workload's part: a plain function that reads, writes, syncs and sleeps in virtual time, as a process
// would. Actors run one at a time, each until it waits, so they may share variables; what they must not do is
// wait for one another by other means.
type Actor func(p *Proc)

// Proc is an actor's hold on the volume. Its methods return when the modelled operation is done.
type Proc struct {
	v      *Volume
	yield  func(struct{}) bool
	resume func()
	// Rand is the actor's own, from the seed of the run.
	Rand *rand.Rand
}

// stopped unwinds an actor whose time is up.
type stopped struct{}

// Run runs actors over a volume for a span of virtual time, or until all have returned, and tells how long that was.
// Those that have not returned by then are ended where they wait (their deferred functions run). What the
// volume has under way goes on when the machine does. The same actors, seed and volume give the same run.
func Run(v *Volume, span time.Duration, seed uint64, actors ...Actor) time.Duration {
	m, start := v.m, v.m.now
	left := len(actors)
	var stops []func()
	for i, a := range actors {
		p := &Proc{v: v, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		next, stop := iter.Pull(func(yield func(struct{}) bool) {
			p.yield = yield
			defer func() {
				if e := recover(); e != nil && e != any(stopped{}) {
					panic(e)
				}
			}()
			a(p)
		})
		p.resume = func() {
			if _, more := next(); !more {
				left--
			}
		}
		stops = append(stops, stop)
		m.After(0, p.resume)
	}
	for left > 0 {
		t, ok := m.Next()
		if !ok || t > start+span {
			break
		}
		m.Step()
	}
	for _, stop := range stops {
		stop()
	}
	if left > 0 {
		m.AdvanceTo(start + span)
	}
	return m.now - start
}

// wait starts an operation, and gives the turn away until it is done.
func (p *Proc) wait(start func(done func())) {
	ended := false
	start(func() { p.v.m.After(0, func() { resumeUnless(&ended, p.resume) }) })
	if !p.yield(struct{}{}) {
		ended = true
		panic(stopped{})
	}
}

func resumeUnless(ended *bool, resume func()) {
	if !*ended {
		resume()
	}
}

// Volume is the one that the actor works on.
func (p *Proc) Volume() *Volume { return p.v }

// Now is the virtual time.
func (p *Proc) Now() time.Duration { return p.v.m.now }

// Sleep does nothing for d.
func (p *Proc) Sleep(d time.Duration) { p.wait(func(done func()) { p.v.m.After(d, done) }) }

// Write is Volume.Write, and tells how long it took; so do the others.
func (p *Proc) Write(f *Inode, pos, n int64) time.Duration {
	return p.timed(func(done func()) { p.v.Write(f, pos, n, done) })
}

// Append writes at the end.
func (p *Proc) Append(f *Inode, n int64) time.Duration { return p.Write(f, f.size, n) }

// Read is Volume.Read.
func (p *Proc) Read(f *Inode, h *Reader, pos, n int64, o ReadOptions) time.Duration {
	return p.timed(func(done func()) { p.v.Read(f, h, pos, n, o, done) })
}

// WillNeed is Volume.WillNeed.
func (p *Proc) WillNeed(f *Inode, pos, n int64) {
	p.wait(func(done func()) { p.v.WillNeed(f, pos, n, done) })
}

// DontNeed is Volume.DontNeed.
func (p *Proc) DontNeed(f *Inode, pos, n int64) {
	p.wait(func(done func()) { p.v.DontNeed(f, pos, n, done) })
}

// Sync is Volume.Sync.
func (p *Proc) Sync(f *Inode) time.Duration {
	return p.timed(func(done func()) { p.v.Sync(f, done) })
}

// WriteBehind is Volume.WriteBehind.
func (p *Proc) WriteBehind(f *Inode, pos, n int64) time.Duration {
	return p.timed(func(done func()) { p.v.WriteBehind(f, pos, n, done) })
}

// Preallocate is Volume.Preallocate.
func (p *Proc) Preallocate(f *Inode, pos, n int64) (err error) {
	p.wait(func(done func()) { p.v.Preallocate(f, pos, n, func(e error) { err = e; done() }) })
	return err
}

// Remove is Volume.Remove.
func (p *Proc) Remove(f *Inode) time.Duration {
	return p.timed(func(done func()) { p.v.Remove(f, done) })
}

func (p *Proc) timed(start func(done func())) time.Duration {
	at := p.Now()
	p.wait(start)
	return p.Now() - at
}
