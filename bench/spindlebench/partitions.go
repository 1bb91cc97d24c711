package spindlebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"platter/bench/cputime"
	"platter/engine/commitlog"
	"platter/engine/segment"
	"platter/engine/spindle"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/handles"
	"platter/io/hddsim"
)

// Growth is one way of appending to many logs: how many, and what is done so that the disk stays sequential.
type Growth struct {
	Name        string
	Files       int
	GrowAhead   bool
	WriteBehind int64 // bytes of a run; 0: left to the kernel
}

// PartitionModel is a modelled bench of appends without sync.
type PartitionModel struct {
	Device     string
	Make       Maker // makes the device instead, where it is given
	Seed       uint64
	Span       time.Duration
	BatchBytes int64
	Writers    int
	Memory     int64
	Dirty      int64 // the kernel's limit of dirty bytes; writeback begins at half of it
}

// DefaultPartitionModel is a 7,200-rpm drive and a machine with 16 GiB, a fifth of which may be dirty.
func DefaultPartitionModel() PartitionModel {
	return PartitionModel{
		Device: "hdd7200", Seed: 1, Span: 60 * time.Second, BatchBytes: 64 << 10, Writers: 8, Memory: 16 << 30, Dirty: 3200 << 20,
	}
}

// Appended is what a bench of appends gave.
type Appended struct {
	Growth      Growth
	DirtyBytes  int64 // the limit; 0: the machine's
	BytesPerSec float64
	Pieces      float64 // extents of a file, on average; only where they are known
	CPUSeconds  float64
}

// Run measures the steady rate at which the device writes: over the second half of the span, once the page cache has filled up
// with what it may keep dirty.
func (c PartitionModel) Run(g Growth) (Appended, error) {
	m := &hddsim.Machine{}
	dev, err := device(m, c.Device, c.Make, c.Seed)
	if err != nil {
		return Appended{}, err
	}
	vp := hddsim.DefaultVolume()
	vp.MemoryBytes, vp.DirtyBytes, vp.BackgroundBytes = c.Memory, c.Dirty, c.Dirty/2
	v := hddsim.NewVolume(m, dev, vp)
	files := make([]*grown, g.Files)
	for i := range files {
		files[i] = &grown{f: v.Create()}
	}
	var actors []hddsim.Actor
	for w := range min(c.Writers, g.Files) {
		actors = append(actors, func(p *hddsim.Proc) {
			for i := w; err == nil; i += min(c.Writers, g.Files) {
				if e := files[i%len(files)].append(p, g, c.BatchBytes); e != nil {
					err = e
				}
			}
		})
	}
	hddsim.Run(v, c.Span/2, c.Seed, actors...)
	before := dev.Stats().WriteBytes
	hddsim.Run(v, c.Span/2, c.Seed+1, actors...)
	a := Appended{Growth: g, DirtyBytes: c.Dirty, BytesPerSec: float64(dev.Stats().WriteBytes-before) / (c.Span / 2).Seconds()}
	for _, f := range files {
		a.Pieces += float64(f.f.Extents()) / float64(len(files))
	}
	return a, err
}

// grown is a file that grows as the engine's segments do.
type grown struct {
	f        *hddsim.Inode
	chunk    int64
	reserved int64
	at       time.Duration
	behind   int64
}

func (f *grown) append(p *hddsim.Proc, g Growth, n int64) error {
	size := f.f.Size()
	if d := segment.DefaultGrowth; g.GrowAhead && size >= d.FirstBytes && size+n > f.reserved {
		f.chunk = d.Next(f.chunk, (p.Now() - f.at).Milliseconds(), p.Volume().FreeBytes())
		f.at = p.Now()
		if f.chunk > 0 {
			if err := p.Preallocate(f.f, size, n+f.chunk); err != nil {
				return err
			}
			f.reserved = size + n + f.chunk
		}
	}
	p.Append(f.f, n)
	if size+n-f.behind >= g.WriteBehind && g.WriteBehind > 0 {
		p.WriteBehind(f.f, f.behind, size+n-f.behind)
		f.behind = size + n
	}
	return nil
}

// Break finds the smallest dirty limit, in steps of a factor of two down from the model's, at which g still reaches part of what
// one file does with the model's own limit. Rows are what it measured on the way, one file first.
func (c PartitionModel) Break(g Growth, part float64) (limit int64, rows []Appended, err error) {
	one := g
	one.Name, one.Files = "one file", 1
	base, err := c.Run(one)
	rows = append(rows, base)
	for dirty := c.Dirty; err == nil && dirty >= 16<<20; dirty /= 2 {
		c.Dirty = dirty
		var a Appended
		if a, err = c.Run(g); err != nil {
			break
		}
		rows = append(rows, a)
		if a.BytesPerSec < part*base.BytesPerSec {
			break
		}
		limit = dirty
	}
	return limit, rows, err
}

// PartitionDir is the bench on a real directory: the engine's own logs.
type PartitionDir struct {
	FS         disk.FS
	Dir        string
	RunBytes   int64 // of one run; it ends with a sync, so that all of it has reached the disk
	BatchBytes int64
	Writers    int
	Rounds     int
	Progress   io.Writer
}

// DefaultPartitionDir takes 2 GiB of room at a time.
func DefaultPartitionDir(fs disk.FS, dir string) PartitionDir {
	return PartitionDir{FS: fs, Dir: dir, RunBytes: 2 << 30, BatchBytes: 64 << 10, Writers: 4, Rounds: 5, Progress: io.Discard}
}

// Run measures the ways in turn, Rounds times.
func (c PartitionDir) Run(ctx context.Context, ways []Growth) ([][]Appended, error) {
	if err := roomFor(c.FS, c.Dir, c.RunBytes); err != nil {
		return nil, err
	}
	out := make([][]Appended, len(ways))
	for round := range c.Rounds {
		for i := range ways {
			at := (i + round) % len(ways)
			fmt.Fprintf(c.Progress, "\rround %d of %d: %-20s", round+1, c.Rounds, ways[at].Name)
			a, err := c.one(ctx, ways[at])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ways[at].Name, err)
			}
			out[at] = append(out[at], a)
		}
	}
	fmt.Fprint(c.Progress, "\r\x1b[K")
	return out, nil
}

func (c PartitionDir) one(ctx context.Context, g Growth) (a Appended, err error) {
	dir := filepath.Join(c.Dir, fmt.Sprintf("platter-bench-partitions-%d", os.Getpid()))
	if err := c.FS.MkdirAll(dir); err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, c.FS.RemoveAll(dir)) }()
	p := spindle.Rotational(0)
	p.Cold, p.WriteBehindBytes = false, g.WriteBehind
	set := spindle.New(c.FS, clock.Real{}, []spindle.Dir{{Path: dir, Params: p}})
	defer set.Close()
	files := handles.New(set, max(64, 2*g.Files))
	defer files.Close()
	growth := segment.Growth{}
	if g.GrowAhead {
		growth = segment.DefaultGrowth
	}
	logs := make([]*commitlog.Log, g.Files)
	for i := range logs {
		logs[i], err = commitlog.Open(ctx, commitlog.Options{
			FS: set, Handles: files, Clock: clock.Real{}, Dir: filepath.Join(dir, fmt.Sprint(i)), Topic: "bench",
			Config: commitlog.DefaultConfig(), Growth: &growth,
		})
		if err != nil {
			return a, err
		}
		defer logs[i].Discard()
	}
	cpu, cpuErr := cputime.Of(os.Getpid())
	began := time.Now()
	if err := c.fill(ctx, logs); err != nil {
		return a, err
	}
	if err := settle(dir, logs); err != nil {
		return a, err
	}
	a = Appended{Growth: g, BytesPerSec: float64(c.RunBytes) / time.Since(began).Seconds()}
	if after, err := cputime.Of(os.Getpid()); err == nil && cpuErr == nil {
		a.CPUSeconds = (after - cpu).Seconds()
	}
	return a, nil
}

// fill appends RunBytes, round robin over the logs.
func (c PartitionDir) fill(ctx context.Context, logs []*commitlog.Log) error {
	writers := min(c.Writers, len(logs))
	errs := make([]error, writers)
	each(writers, writers, func(w int) {
		b, err := makeBatch(c.BatchBytes)
		if err != nil {
			errs[w] = err
			return
		}
		mine := c.RunBytes / int64(writers)
		for i, n := w, int64(0); n < mine && errs[w] == nil; i, n = i+writers, n+int64(len(b)) {
			if errs[w] = ctx.Err(); errs[w] == nil {
				errs[w] = appendNow(logs[i%len(logs)], b)
			}
		}
	})
	return errors.Join(errs...)
}

// each calls f for 0 to n-1, at most parallel at a time.
func each(parallel, n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(parallel, n) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
