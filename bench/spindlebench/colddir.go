package spindlebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"platter/bench/cputime"
	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/spindle"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/handles"
	"platter/io/profile"
)

// ColdDir is a cold bench on a real directory: the engine's own logs, its lane, and loopback sockets.
type ColdDir struct {
	FS          disk.FS
	Dir         string // a directory of the bench's own is made in it, and removed at the end
	Readers     int
	BudgetBytes int64 // of cold data, over all readers
	Span        time.Duration
	Rounds      int
	TailRate    int64 // bytes a second of the appender
	BatchBytes  int64
	Params      spindle.Params
	Progress    io.Writer
}

// DefaultColdDir takes 2 GiB of room and a few minutes on a spinning disk. The lane is as suits the device.
func DefaultColdDir(fs disk.FS, dir string) ColdDir {
	return ColdDir{
		FS: fs, Dir: dir, Readers: 16, BudgetBytes: 2 << 30, Span: 20 * time.Second, Rounds: 3, TailRate: 20e6, BatchBytes: 64 << 10,
		Params: spindle.Suits(profile.Read(dir).Defaults(), spindle.MemoryDefault(fs)), Progress: io.Discard,
	}
}

// Run measures the loads in turn, Rounds times, and returns the figures of each load, a round after the other. Between
// two loads the cold data is evicted from the page cache.
func (c ColdDir) Run(ctx context.Context, loads []Load) (figures [][]Figures, err error) {
	dir := filepath.Join(c.Dir, fmt.Sprintf("platter-bench-cold-%d", os.Getpid()))
	if err := c.FS.MkdirAll(dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.FS.RemoveAll(dir)) }()
	if err := roomFor(c.FS, c.Dir, c.BudgetBytes+int64(float64(c.TailRate)*c.Span.Seconds())); err != nil {
		return nil, err
	}
	if err := c.fill(ctx, dir); err != nil {
		return nil, err
	}
	figures = make([][]Figures, len(loads))
	for round := range c.Rounds {
		for i := range loads {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			at := (i + round) % len(loads) // nobody is always first
			fmt.Fprintf(c.Progress, "\rround %d of %d: %-20s", round+1, c.Rounds, loads[at].Name)
			if err := c.evict(dir); err != nil {
				return nil, err
			}
			f, err := c.one(ctx, dir, loads[at])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", loads[at].Name, err)
			}
			figures[at] = append(figures[at], f)
		}
	}
	fmt.Fprint(c.Progress, "\r\x1b[K")
	return figures, nil
}

// roomFor wants a fifth more than bytes.
func roomFor(fs disk.FS, dir string, bytes int64) error {
	bytes += bytes / 5
	if space, err := fs.Space(dir); err == nil && space.FreeBytes < bytes {
		return fmt.Errorf("%s has %d MiB free, the bench wants %d", dir, space.FreeBytes>>20, bytes>>20)
	}
	return nil
}

func coldDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("cold-%d", i)) }

// fill writes the cold logs, and syncs them.
func (c ColdDir) fill(ctx context.Context, dir string) error {
	b, err := makeBatch(1 << 20)
	if err != nil {
		return err
	}
	files := handles.New(c.FS, 64)
	defer files.Close()
	for i := range c.Readers {
		l, err := c.open(c.FS, files, coldDir(dir, i))
		if err != nil {
			return err
		}
		for n := int64(0); n < c.BudgetBytes/int64(c.Readers); n += int64(len(b)) {
			if err := ctx.Err(); err != nil {
				l.Discard()
				return err
			}
			if err := appendNow(l, b); err != nil {
				l.Discard()
				return err
			}
		}
		fmt.Fprintf(c.Progress, "\rwriting cold logs: %d of %d", i+1, c.Readers)
		if err := l.Close(true); err != nil {
			return err
		}
	}
	return nil
}

func (c ColdDir) open(fs disk.FS, files *handles.Cache, dir string) (*commitlog.Log, error) {
	cfg := commitlog.DefaultConfig()
	cfg.MaxMessageBytes = 16 << 20
	cfg.SegmentBytes = 256 << 20
	return commitlog.Open(context.Background(), commitlog.Options{
		FS: fs, Handles: files, Clock: clock.Real{}, Dir: dir, Topic: "bench", Config: cfg, CleanShutdown: true,
		RecoveryPoint: math.MaxInt64,
	})
}

// makeBatch is a record batch of about n bytes.
func makeBatch(n int64) (batch.Batch, error) {
	bl := batch.NewBuilder()
	bl.Add(time.Now().UnixMilli(), nil, make([]byte, n-100))
	return bl.Build()
}

// appendNow appends and waits.
func appendNow(l *commitlog.Log, b batch.Batch) error {
	done := make(chan error, 1)
	l.Enqueue(&commitlog.Append{Batches: []batch.Batch{b}, Done: func(a commitlog.Appended) { done <- a.Err }})
	return <-done
}

// evict drops the cold logs from the page cache.
func (c ColdDir) evict(dir string) error {
	for i := range c.Readers {
		infos, err := c.FS.ReadDir(coldDir(dir, i))
		if err != nil {
			return err
		}
		for _, in := range infos {
			f, err := c.FS.Open(filepath.Join(coldDir(dir, i), in.Name), disk.ReadWrite)
			if err != nil {
				return err
			}
			err = EvictFile(f, in.SizeBytes)
			if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, disk.ErrUnsupported) {
				return err
			}
		}
	}
	return nil
}

// ErrStaysCached: what was to be measured cold does not leave the page cache, as on a file system that is memory.
var ErrStaysCached = errors.New("nothing there can be measured cold")

// EvictFile syncs and drops a file, or tells ErrStaysCached. What the kernel still holds in a hand (pages on their way to a list of its own) it drops when it is
// asked again.
func EvictFile(f disk.File, size int64) error {
	const (
		tries = 50
		// rest may stay: buffers of a connection that has ended are given back when its processor next has to do with the network.
		rest = 2 << 20
	)
	for i := 0; ; i++ {
		if err := errors.Join(f.Sync(), f.Advise(0, size, disk.DontNeed)); err != nil {
			return err
		}
		have, err := f.Resident(0, size)
		switch {
		case err != nil || size <= 1<<20 || have <= size/10:
			return err
		case i == tries && have <= size/10+rest:
			return nil
		case i == tries:
			return fmt.Errorf("%s: %d of %d bytes stay in the page cache: %w", f.Path(), have, size, ErrStaysCached)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// one plays one situation.
func (c ColdDir) one(ctx context.Context, dir string, l Load) (f Figures, err error) {
	p := c.Params
	p.Cold, p.Buffers = l.Lane, l.Buffers
	set := spindle.New(c.FS, clock.Real{}, []spindle.Dir{{Path: dir, Device: "bench", Params: p}})
	defer set.Close()
	files := handles.New(set, 512)
	defer files.Close()
	// One reader takes all logs, one after the other, so that it has as much to read.
	r := &reading{readers: make([][]*commitlog.Log, l.Readers)}
	for i := 0; l.Readers > 0 && i < c.Readers; i++ {
		log, err := c.open(set, files, coldDir(dir, i))
		if err != nil {
			return f, err
		}
		defer log.Discard()
		r.readers[i%l.Readers] = append(r.readers[i%l.Readers], log)
	}
	var log *commitlog.Log
	if l.Tail {
		tail := filepath.Join(dir, "tail")
		if log, err = c.open(set, files, tail); err != nil {
			return f, err
		}
		defer func() {
			log.Discard()
			err = errors.Join(err, set.RemoveAll(tail))
		}()
	}
	cpu, cpuErr := cputime.Of(os.Getpid())
	ctx, cancel := context.WithTimeout(ctx, c.Span)
	defer cancel()
	r.ctx = ctx
	began := time.Now()
	var t *liveTail
	if l.Tail {
		if t, err = startTail(ctx, log, c.TailRate, c.BatchBytes); err != nil {
			return f, err
		}
	}
	f = Figures{Load: l}
	if l.Readers > 0 {
		err = r.run()
		f.BytesPerSec, f.Least, f.Most = r.rate(), r.least(), r.most()
		cancel()
	}
	if t != nil {
		terr := t.wait()
		err = errors.Join(err, terr)
		f.Append, f.TailRead = quantiles(t.appends), quantiles(t.reads)
	}
	if after, err := cputime.Of(os.Getpid()); err == nil && cpuErr == nil {
		f.CPUSeconds = (after - cpu).Seconds()
	}
	f.Seconds = time.Since(began).Seconds()
	f.Lane = set.Stats()[0].Stats
	return f, err
}
