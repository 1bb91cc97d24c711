package disklab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"platter/bench/spindlebench"
	"platter/engine/segment"
	"platter/engine/spindle"
	"platter/io/hddsim"
	"platter/io/profile"
)

// modelTarget is a modelled device; each cell gets one of its own, with empty caches, so that a cell's figures do not
// depend on those before it. Times are virtual: the same model and seed give the same figures.
type modelTarget struct {
	o       Options
	profile *profile.Profile
	size    int64 // of the device
	span    int64 // what random positions are spread over
	write   int64 // what a cell writes at most
	growth  segment.Growth
}

func newModelTarget(o Options) (*modelTarget, error) {
	if err := o.Model.Check(); err != nil {
		return nil, err
	}
	dev, err := o.Model.device(&hddsim.Machine{}, o.Seed)
	if err != nil {
		return nil, err
	}
	t := &modelTarget{o: o, profile: o.Model.profile(), size: dev.SizeBytes(), span: dev.SizeBytes(), write: modelBytes}
	if o.Model.SpanBytes > 0 {
		t.span = o.Model.SpanBytes
	}
	if t.span > t.size {
		return nil, fmt.Errorf("random positions over %s, on a disk of %s", profile.Size(t.span), profile.Size(t.size))
	}
	if o.modelBytes > 0 {
		t.write = o.modelBytes
	}
	t.write = min(t.write, t.size/4/longest*longest)
	t.growth = segment.Growth{FirstBytes: t.profile.Defaults().GrowFirstBytes, MaxBytes: growMax(t.profile)}
	return t, nil
}

// Measure plays one cell on the model, writing as many bytes as another one did: for comparisons. bytes 0: as in a run.
func (m *Model) Measure(c Cell, bytes int64, seed uint64) (Cell, error) {
	t, err := newModelTarget(Options{Model: m, Seed: seed})
	if err != nil {
		return c, err
	}
	if bytes > 0 {
		t.write = min(bytes, t.write)
	}
	c.Figures, c.Skipped, c.Modelled = Figures{}, "", true
	err = t.measure(context.Background(), &c, 0)
	return c, err
}

func (t *modelTarget) prepare(context.Context, Group) error { return nil }
func (t *modelTarget) close() error                         { return nil }

func (t *modelTarget) describe(r *Result) {
	r.On, r.Profile, r.Direct, r.SpanBytes = t.o.Model.String(), t.profile, "yes", t.span
}

// What a modelled cell does at most: virtual time is free, the simulation is not.
const (
	modelOps   = 1500
	modelBytes = 2 << 30
	modelSpan  = 20 * time.Second
)

func (t *modelTarget) measure(_ context.Context, c *Cell, _ time.Duration) error {
	if c.Group == Cold {
		return t.cold(c)
	}
	m := &hddsim.Machine{}
	dev, err := t.o.Model.device(m, t.o.Seed)
	if err != nil {
		return err
	}
	defer func() { c.Busy = dev.Stats().Busy.Seconds() }()
	if c.Group == Device {
		t.device(m, dev, c)
		return nil
	}
	v := hddsim.NewVolume(m, dev, hddsim.DefaultVolume())
	switch c.Group {
	case Cached:
		if c.Op == Read {
			return t.read(v, c)
		}
		if c.Pattern == Random {
			return t.overwrite(v, c)
		}
		c.Files = 1
		return t.append(v, c)
	case Segment:
		return t.segments(v, c)
	default:
		return t.append(v, c)
	}
}

func (t *modelTarget) device(m *hddsim.Machine, dev hddsim.Device, c *Cell) {
	kind, slots := hddsim.Read, t.span/c.SizeBytes
	if c.Op == Write {
		kind = hddsim.Write
	}
	count := int(min(modelOps, max(t.write, 64<<20)/c.SizeBytes))
	rnd := rand.New(rand.NewPCG(t.o.Seed, 1))
	took, latencies := hddsim.Loop(m, dev, c.Depth, count, func(i int) hddsim.Request {
		if c.Pattern == Random {
			return hddsim.Request{Kind: kind, Pos: rnd.Int64N(slots) * c.SizeBytes, Len: c.SizeBytes}
		}
		// A set of several requests in order is one long write to the kernel, unless each is waited for.
		return hddsim.Request{Kind: kind, Pos: int64(i) * c.SizeBytes, Len: c.SizeBytes, More: c.Depth > 1 && i+1 < count}
	})
	c.fill(int64(count)*c.SizeBytes, took, latencies)
}

func (t *modelTarget) read(v *hddsim.Volume, c *Cell) error {
	size, count := t.write, min(t.write/8, 64<<10*c.SizeBytes)/c.SizeBytes
	if c.Pattern == Random {
		size, count = min(32<<30, t.span, t.size/2), modelOps/2 // far more than the cache holds of it, unless the span is short
	}
	f, err := v.Place(size, 0)
	if err != nil {
		return err
	}
	var latencies []time.Duration
	took := hddsim.Run(v, time.Hour, t.o.Seed, func(p *hddsim.Proc) {
		var h hddsim.Reader
		for i := range count {
			if c.Pattern == Random {
				latencies = append(latencies, p.Read(f, nil, p.Rand.Int64N(size/c.SizeBytes)*c.SizeBytes, c.SizeBytes, hddsim.ReadOptions{}))
				continue
			}
			latencies = append(latencies, p.Read(f, &h, i*c.SizeBytes, c.SizeBytes, hddsim.ReadOptions{}))
		}
	})
	c.fill(count*c.SizeBytes, took, latencies)
	return nil
}

// overwrite writes at random into a file that is on the disk, and syncs each time.
func (t *modelTarget) overwrite(v *hddsim.Volume, c *Cell) error {
	size := min(32<<30, t.span, t.size/2)
	f, err := v.Place(size, 0)
	if err != nil {
		return err
	}
	var latencies []time.Duration
	var actors []hddsim.Actor
	for range c.Depth {
		actors = append(actors, func(p *hddsim.Proc) {
			for len(latencies) < modelOps/2 {
				at := p.Write(f, p.Rand.Int64N(size/c.SizeBytes)*c.SizeBytes, c.SizeBytes)
				latencies = append(latencies, at+p.Sync(f))
			}
		})
	}
	took := hddsim.Run(v, time.Hour, t.o.Seed, actors...)
	c.fill(int64(len(latencies))*c.SizeBytes, took, latencies)
	return nil
}

// append grows files: in turn with one sync of all at the end, each append synced, or all synced as a set in rounds.
func (t *modelTarget) append(v *hddsim.Volume, c *Cell) error {
	files := make([]*hddsim.Inode, c.Files)
	for i := range files {
		files[i] = v.Create()
	}
	var latencies []time.Duration
	if c.Group == Syncs && c.Files > 1 {
		const rounds = 20
		var took time.Duration
		for i := range uint64(rounds) {
			one := hddsim.Run(v, time.Hour, t.o.Seed+i, each(files, func(p *hddsim.Proc, f *hddsim.Inode) {
				p.Append(f, c.SizeBytes)
				p.Sync(f)
			})...)
			took, latencies = took+one, append(latencies, one)
		}
		c.fill(rounds*int64(c.Files)*c.SizeBytes, took, latencies)
		return nil
	}
	if c.SyncEach {
		var actors []hddsim.Actor
		workers := min(c.Files, syncersMax)
		for who := range workers {
			actors = append(actors, func(p *hddsim.Proc) {
				for i := who; len(latencies) < modelOps; i += workers {
					f := files[i%c.Files]
					at := p.Append(f, c.SizeBytes)
					latencies = append(latencies, at+p.Sync(f))
				}
			})
		}
		took := hddsim.Run(v, modelSpan, t.o.Seed, actors...)
		c.fill(int64(len(latencies))*c.SizeBytes, took, latencies)
		return nil
	}
	n := t.write / c.SizeBytes
	if c.Group == Cached {
		n = min(n, 128<<10)
	}
	took := hddsim.Run(v, time.Hour, t.o.Seed, func(p *hddsim.Proc) {
		for i := range n {
			latencies = append(latencies, p.Append(files[i%int64(c.Files)], c.SizeBytes))
		}
	})
	took += syncAll(v, files, t.o.Seed)
	c.fill(n*c.SizeBytes, took, latencies)
	return nil
}

// each is an actor a file.
func each(files []*hddsim.Inode, do func(p *hddsim.Proc, f *hddsim.Inode)) (actors []hddsim.Actor) {
	for _, f := range files {
		actors = append(actors, func(p *hddsim.Proc) { do(p, f) })
	}
	return actors
}

// syncAll syncs files side by side: they share commits of the journal.
func syncAll(v *hddsim.Volume, files []*hddsim.Inode, seed uint64) time.Duration {
	return hddsim.Run(v, time.Hour, seed, each(files, func(p *hddsim.Proc, f *hddsim.Inode) { p.Sync(f) })...)
}

func (t *modelTarget) cold(c *Cell) error {
	b := spindlebench.DefaultColdModel(t.o.Model.Kind)
	b.Make, b.Seed = t.o.Model.device, t.o.Seed
	b.Params = spindle.Suits(t.profile.Defaults(), 1<<30)
	b.Span, b.WarmUp, b.FileBytes = modelSpan, modelSpan/2, min(16<<30, t.size/2/readers/longest*longest)
	if t.profile.Kind != profile.HDD { // as much happens in a tenth of the time
		b.Span, b.WarmUp = modelSpan/20, modelSpan/20
	}
	if t.o.modelBytes > 0 {
		b.Span, b.WarmUp = b.Span/10, b.WarmUp/10
	}
	f, err := b.Run(spindlebench.Load{Name: c.Name, Readers: c.Readers, Lane: c.Lane, Tail: c.Appender})
	if err != nil {
		return err
	}
	f.Seconds = b.Span.Seconds()
	c.cold([]spindlebench.Figures{f})
	return nil
}

func (t *modelTarget) segments(v *hddsim.Volume, c *Cell) error {
	type log struct {
		f               *hddsim.Inode
		reserved, chunk int64
	}
	logs := make([]log, c.Files)
	var files []*hddsim.Inode
	var latencies []time.Duration
	n := t.write / c.SizeBytes
	var failed error
	took := hddsim.Run(v, time.Hour, t.o.Seed, func(p *hddsim.Proc) {
		for i := range n {
			l := &logs[i%int64(c.Files)]
			if l.f == nil || l.f.Size()+c.SizeBytes > c.SegmentBytes {
				*l = log{f: v.Create()}
				files = append(files, l.f)
			}
			size := l.f.Size()
			if g := t.growth; c.GrowAhead && size >= g.FirstBytes && size+c.SizeBytes > l.reserved {
				l.chunk = min(g.Next(l.chunk, 0, v.FreeBytes()), c.SegmentBytes-size)
				if failed = p.Preallocate(l.f, size, l.chunk); failed != nil {
					return
				}
				l.reserved = size + l.chunk
			}
			latencies = append(latencies, p.Append(l.f, c.SizeBytes))
		}
	})
	if failed != nil {
		return failed
	}
	took += syncAll(v, files, t.o.Seed)
	c.fill(n*c.SizeBytes, took, latencies)
	for _, f := range files {
		c.Pieces += float64(f.Extents()) / float64(len(files))
	}
	v.DropCaches()
	back := hddsim.Run(v, time.Hour, t.o.Seed, func(p *hddsim.Proc) {
		var h hddsim.Reader
		for at := int64(0); at < files[0].Size(); at += long {
			p.Read(files[0], &h, at, min(long, files[0].Size()-at), hddsim.ReadOptions{})
		}
	})
	c.ReadBack = float64(files[0].Size()) / back.Seconds()
	return nil
}
