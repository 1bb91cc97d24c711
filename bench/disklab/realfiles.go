package disklab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"platter/bench/spindlebench"
	ioconn "platter/io/conn"
	"platter/io/disk"
)

// spareDescriptors are those that the process needs for itself.
const spareDescriptors = 64

// syncersMax is how many appends are under way when each is synced.
const syncersMax = 16

// create makes n files; undo closes and removes them.
func (t *realTarget) create(ctx context.Context, n int) (files []disk.File, undo func() error, err error) {
	t.made++
	dir := filepath.Join(t.dir, fmt.Sprintf("files-%d", t.made))
	undo = func() (err error) {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		return errors.Join(err, t.fs.RemoveAll(dir))
	}
	if err := t.fs.MkdirAll(dir); err != nil {
		return nil, undo, err
	}
	for i := range n {
		f, err := t.fs.Open(filepath.Join(dir, fmt.Sprint(i)), disk.CreateNew)
		if err == nil {
			err = ctx.Err()
		}
		if f != nil {
			files = append(files, f)
		}
		if err != nil {
			return nil, undo, err
		}
	}
	return files, undo, nil
}

// growing appends to files in turn: with a sync of all at the end, or with one of each append.
func (t *realTarget) growing(ctx context.Context, c *Cell, d time.Duration) (err error) {
	if limit := ioconn.DescriptorLimit() - spareDescriptors; c.Files > limit {
		return skip(fmt.Sprintf("this process may have %d files open (ulimit -n)", limit))
	}
	files, undo, err := t.create(ctx, c.Files)
	defer func() { err = errors.Join(err, undo()) }()
	if err != nil {
		return err
	}
	t.stamp()
	budget := t.writable(d)
	size := c.SizeBytes
	if c.Group == Growing && !c.SyncEach { // each file gets eight appends at least
		size = max(small, min(size, budget/int64(8*c.Files)/small*small))
	}
	set := c.Group == Syncs && c.Files > 1
	l := load{depth: 1, time: d, seed: t.o.Seed, opsMax: max(1, budget/size)}
	locks := make([]sync.Mutex, c.Files)
	at := make([]int64, c.Files)
	l.do = func(_ int, n int64, _ *rand.Rand) (int64, error) {
		i := int(n % int64(c.Files))
		locks[i].Lock() // one writer a file
		defer locks[i].Unlock()
		k, err := files[i].WriteV([][]byte{t.payload[:size]}, at[i])
		at[i] += k
		if err == nil && c.SyncEach && !set {
			err = files[i].Sync()
		}
		return k, err
	}
	switch {
	case set:
		one := l.do
		l.opsMax = max(1, l.opsMax/int64(c.Files))
		l.do = func(who int, n int64, rnd *rand.Rand) (bytes int64, err error) {
			for i := range int64(c.Files) {
				k, err := one(who, i, rnd)
				if bytes += k; err != nil {
					return bytes, err
				}
			}
			return bytes, t.fs.Sync(files)
		}
	case c.SyncEach:
		l.depth = min(c.Files, syncersMax)
	default:
		l.finish = func() error { return t.fs.Sync(files) }
	}
	if err := l.run(ctx, c); err != nil {
		return err
	}
	if !c.SyncEach && c.Files == 1 {
		t.saw(c.Bytes, time.Duration(c.Seconds*float64(time.Second)))
	}
	return nil
}

// coldRounds is how often each situation is played: single ones differ too much to advise by.
const coldRounds = 3

// coldReaders plays all situations at the first of them.
func (t *realTarget) coldReaders(ctx context.Context, c *Cell, d time.Duration) error {
	if t.noCold != nil {
		return t.noCold
	}
	if t.cold == nil {
		b := spindlebench.DefaultColdDir(t.fs, t.dir)
		// Half of the time is for readers; the rest goes into writing what they read, and taking it out of memory again each time.
		b.Readers, b.Rounds, b.Span = readers, coldRounds, d/2/time.Duration(coldRounds*len(coldCells()))
		b.BudgetBytes = min(t.o.BudgetBytes/2, max(readers<<20, t.writable(d/4)))
		b.TailRate = max(64<<10, int64(min(float64(b.TailRate), t.rate/8, float64(t.o.BudgetBytes/4)/d.Seconds())))
		var loads []spindlebench.Load
		for _, c := range coldCells() {
			loads = append(loads, spindlebench.Load{Name: c.Name, Readers: c.Readers, Lane: c.Lane, Tail: c.Appender})
		}
		figures, err := b.Run(ctx, loads)
		if err != nil {
			t.noCold = staysCached(err)
			return t.noCold
		}
		t.cold = map[string][]spindlebench.Figures{}
		for i, l := range loads {
			t.cold[l.Name] = figures[i]
		}
	}
	c.cold(t.cold[c.Name])
	return nil
}

// cold takes over the figures of a bench of readers: of the round in the middle, by throughput (of the appender's p99, where it is alone).
func (c *Cell) cold(rounds []spindlebench.Figures) {
	rounds = slices.SortedFunc(slices.Values(rounds), func(a, b spindlebench.Figures) int {
		return cmp.Or(cmp.Compare(a.BytesPerSec, b.BytesPerSec), cmp.Compare(a.Append.P99, b.Append.P99))
	})
	f := rounds[len(rounds)/2]
	c.Seconds, c.BytesPerSec, c.Bytes, c.CPUSeconds = f.Seconds, f.BytesPerSec, int64(f.BytesPerSec*f.Seconds), f.CPUSeconds
	c.Low, c.High = rounds[0].BytesPerSec, rounds[len(rounds)-1].BytesPerSec
	c.Ops = max(1, int64(f.Append.Count))
	c.P50, c.P99, c.Max = micros(f.Append.P50), micros(f.Append.P99), micros(f.Append.Max)
}

// rolling is a file that grows in segments.
type rolling struct {
	f         disk.File
	at        int64
	reserved  int64
	chunk     int64
	roll, log int
}

// segments grows files side by side, each in segments, syncs all, and reads one segment back cold.
func (t *realTarget) segments(ctx context.Context, c *Cell, d time.Duration) (err error) {
	perFile := max(t.writable(d), min(t.o.BudgetBytes/2, c.SegmentBytes/4*int64(c.Files))) / int64(c.Files)
	if perFile < c.SegmentBytes/4 {
		return skip(fmt.Sprintf("the budget is too small: a segment of %d MiB would not get a quarter full", c.SegmentBytes>>20))
	}
	t.made++
	dir := filepath.Join(t.dir, fmt.Sprintf("segments-%d", t.made))
	if err := t.fs.MkdirAll(dir); err != nil {
		return err
	}
	logs := make([]rolling, c.Files)
	var sealed []disk.File
	defer func() {
		for i := range logs {
			if logs[i].f != nil {
				sealed = append(sealed, logs[i].f)
			}
		}
		for _, f := range sealed {
			err = errors.Join(err, f.Close())
		}
		err = errors.Join(err, t.fs.RemoveAll(dir))
	}()
	l := load{depth: 1, time: d, opsMax: perFile * int64(c.Files) / c.SizeBytes}
	l.do = func(_ int, n int64, _ *rand.Rand) (int64, error) {
		r := &logs[n%int64(c.Files)]
		r.log = int(n % int64(c.Files))
		return t.appendTo(dir, c, r, &sealed)
	}
	l.finish = func() error {
		all := append([]disk.File{}, sealed...)
		for _, r := range logs {
			if r.f != nil {
				all = append(all, r.f)
			}
		}
		return errors.Join(t.fs.Sync(all), t.fs.SyncDir(dir))
	}
	if err := l.run(ctx, c); err != nil {
		return err
	}
	return t.readBack(ctx, c, logs[0].f)
}

// appendTo appends as the engine does: growing ahead, rolling when the segment is full.
func (t *realTarget) appendTo(dir string, c *Cell, r *rolling, sealed *[]disk.File) (int64, error) {
	if r.f != nil && r.at+c.SizeBytes > c.SegmentBytes {
		if err := r.f.ReleaseTail(); err != nil && !errors.Is(err, disk.ErrUnsupported) {
			return 0, err
		}
		*sealed = append(*sealed, r.f)
		*r = rolling{roll: r.roll + 1, log: r.log}
	}
	if r.f == nil {
		f, err := t.fs.Open(filepath.Join(dir, fmt.Sprintf("%d-%d", r.log, r.roll)), disk.CreateNew)
		if err != nil {
			return 0, err
		}
		r.f = f
	}
	if g := t.growth; c.GrowAhead && r.at >= g.FirstBytes && r.at+c.SizeBytes > r.reserved {
		r.chunk = min(g.Next(r.chunk, 0, t.o.BudgetBytes), c.SegmentBytes-r.at)
		if err := r.f.Preallocate(r.at, r.chunk); err != nil && !errors.Is(err, disk.ErrUnsupported) {
			return 0, err
		}
		r.reserved = r.at + max(r.chunk, g.FirstBytes)
	}
	n, err := r.f.WriteV([][]byte{t.payload[:c.SizeBytes]}, r.at)
	r.at += n
	return n, err
}

func (t *realTarget) readBack(ctx context.Context, c *Cell, f disk.File) error {
	size, err := f.Size()
	if err != nil || spindlebench.EvictFile(f, size) != nil { // then the figure is left out
		return err
	}
	buf := make([]byte, long)
	back := Cell{}
	l := load{depth: 1, time: time.Second, opsMax: max(1, size/long), do: func(_ int, n int64, _ *rand.Rand) (int64, error) {
		k, err := f.ReadAt(buf[:min(long, size-n*long)], n*long)
		return int64(k), err
	}}
	err = l.run(ctx, &back)
	c.ReadBack = back.BytesPerSec
	return err
}
