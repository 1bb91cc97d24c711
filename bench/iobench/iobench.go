// Package iobench measures Platter's I/O backends against each other on the user's own disk.
//
// # What is measured
//
// A cell is one operation at one size, and two sides that do it: two backends, or two ways over one. The
// sides run in turn, as neighbouring pairs (A B, B A, A B, …) of some milliseconds each, so that whatever
// else the machine does weighs on both. Of each run its median round counts, since on a shared machine a
// run that others broke into says nothing of the backend; the ratio of whole runs stands beside it. The
// result is the median ratio of the pairs with its 95% interval (stats.PairInterval), beside it each side's
// throughput and CPU seconds a gigabyte, and the slowest rounds. Pairs are taken
// until the interval is narrow or the cell's time is up; when to stop does not depend on which side leads.
//
// # What would measure something else, and what is done about it
//
//   - Cold reads: the pages of the bench's own files are dropped (posix_fadvise) before each round, and
//     residency is asked; a cell whose pages stay is skipped, with that reason.
//   - Dirty pages: what a run appended is cut off again after it, so the kernel neither throttles the
//     writer nor writes back during a neighbour's run.
//   - CPU time is the process's, kernel threads that work for a ring included (they belong to the process
//     since Linux 5.12); the receiver of sends is another process.
//   - Files are the bench's own, in a directory of its own below Options.Dir, which is removed at the end,
//     also when the context ends.
//
// A ratio is of throughputs, A's to B's: above one, A is faster.
package iobench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"platter/bench/stats"
	"platter/io/backend"
	"platter/io/disk"
)

// Options of one run. Zero values are replaced by the defaults that are named.
type Options struct {
	Dir         string // the disk to measure; it exists
	Full        bool   // the whole grid, else the quick one
	Only        string // only cells whose Name contains it
	BudgetBytes int64  // most that the bench's files hold at a time, 512 MiB
	Seed        uint64
	Exe         string // the platter binary, for the receiver of sends; empty: a goroutine receives

	SampleTime time.Duration // how long one side runs at a time, 15 ms
	CellTime   time.Duration // how long one cell may take, 1.2 s, with Full 6 s; four times that where claims hang on it and the interval stays wide
	PairsMin   int           // 7
	PairsMax   int           // 301
	WidthMax   float64       // an interval this narrow is enough, 0.015 to each side

	Progress func(done, total int, name string) // may be nil

	take func(*Cell) bool // tests: fewer cells
}

func (o *Options) setDefaults() {
	if o.BudgetBytes == 0 {
		o.BudgetBytes = 512 << 20
	}
	if o.SampleTime == 0 {
		o.SampleTime = 15 * time.Millisecond
	}
	if o.CellTime == 0 {
		o.CellTime = 1200 * time.Millisecond
		if o.Full {
			o.CellTime = 6 * time.Second
		}
	}
	if o.PairsMin == 0 {
		o.PairsMin = 7
	}
	if o.PairsMax == 0 {
		o.PairsMax = 301
	}
	if o.WidthMax == 0 {
		o.WidthMax = 0.015
	}
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
}

// Result is one run.
type Result struct {
	Env    Env     `json:"env"`
	Full   bool    `json:"full"`
	Seed   uint64  `json:"seed"`
	Cells  []Cell  `json:"cells"`
	Claims []Claim `json:"claims"`
}

// Cell is one comparison. Sizes are of one operation; Depth is how many of them are at hand at once.
type Cell struct {
	Group     Group  `json:"group"`
	Op        string `json:"op"`
	SizeBytes int    `json:"size_bytes"`
	Files     int    `json:"files"`
	Depth     int    `json:"depth"`
	A         Side   `json:"a"`
	B         Side   `json:"b"`
	Pairs     int    `json:"pairs"`
	// Throughput is A's to B's, of the typical round: above one A is faster. Overall is the same of whole
	// runs, with every pause in them. CPU is A's CPU time for the same work to B's: below one A is
	// cheaper; zeros where the system does not tell.
	Throughput stats.Interval `json:"throughput_ratio"`
	Overall    stats.Interval `json:"overall_ratio"`
	CPU        stats.Interval `json:"cpu_ratio"`
	// Skipped says why there are no figures.
	Skipped string `json:"skipped,omitempty"`
}

// Group is what a cell is there to show.
type Group string

// The groups.
const (
	Coalescing Group = "coalescing" // one vectored write against a write each
	AutoChoice Group = "auto"       // auto against the backend that it chose
	Backends   Group = "backends"   // a backend against the one of plain system calls
	Cold       Group = "cold"       // ways to read what is not in the page cache
	Sends      Group = "sends"      // ways to send, against the one that is used
	Empty      Group = "empty"      // what handing over costs
)

// Side is one of a cell's two.
type Side struct {
	Backend string `json:"backend"`
	How     string `json:"how"`
	// The medians of Typical and of Samples.
	BytesPerSecond  float64 `json:"bytes_per_second"`
	CPUSecondsPerGB float64 `json:"cpu_seconds_per_gb"`
	// Of one round, which is Depth operations, in microseconds.
	P50Us  float64 `json:"p50_us"`
	P99Us  float64 `json:"p99_us"`
	P999Us float64 `json:"p999_us"`
	Calls  *Calls  `json:"calls,omitempty"`
	// A run each: the throughput of its median round, and the whole of it.
	Typical []float64      `json:"typical_bytes_per_second"`
	Samples []stats.Sample `json:"samples"`
}

// Name is the cell in one line, the same in every run and build that has it.
func (c *Cell) Name() string {
	return fmt.Sprintf("%s: %s %s, %d files, depth %d: %s/%s against %s/%s", c.Group, c.Op, Size(c.SizeBytes),
		c.Files, c.Depth, c.A.Backend, c.A.How, c.B.Backend, c.B.How)
}

// Size is a number of bytes as people write it.
func Size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// bench is a run under way.
type bench struct {
	o     Options
	dir   string // its own
	fs    disk.FS
	judge disk.File // the file of cold reads, once there is one
	peer  *receiver
	seq   int
}

// Run measures. What it made is removed when it returns, also after ctx has ended.
func Run(ctx context.Context, o Options) (res *Result, err error) {
	o.setDefaults()
	b := &bench{o: o}
	if b.fs, _, err = backend.Select("auto"); err != nil {
		return nil, err
	}
	defer closeFS(b.fs)
	if b.dir, err = ownDir(b.fs, o.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if b.judge != nil {
			b.judge.Close()
		}
		err = errors.Join(err, b.fs.RemoveAll(b.dir))
	}()
	if b.peer, err = startReceiver(o.Exe); err != nil {
		return nil, err
	}
	defer b.peer.stop()
	res = &Result{Env: Describe(b.fs, b.dir), Full: o.Full, Seed: o.Seed}
	cells := plan(o, b.fs, b.dir)
	for i := range cells {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := &cells[i]
		o.Progress(i, len(cells), c.Name())
		var skip *skipError
		switch err := b.measure(ctx, c); {
		case err == nil:
		case ctx.Err() != nil: // Ctrl-C ends the receiver too
			return nil, ctx.Err()
		case errors.As(err, &skip):
			c.Skipped = skip.why
		default:
			return nil, fmt.Errorf("%s: %w", c.Name(), err)
		}
	}
	o.Progress(len(cells), len(cells), "")
	res.Cells = cells
	res.Claims = claims(cells)
	return res, nil
}

// ownDir makes the bench's directory: a name that is not there yet.
func ownDir(fs disk.FS, parent string) (string, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	if info, err := fs.Stat(parent); err != nil {
		return "", err
	} else if !info.IsDir {
		return "", fmt.Errorf("%s is no directory", parent)
	}
	for i := 1; ; i++ {
		dir := filepath.Join(parent, fmt.Sprintf("platter-bench-io-%d", i))
		if _, err := fs.Stat(dir); err == nil {
			continue
		}
		return dir, fs.MkdirAll(dir)
	}
}

// subDir is a new directory for one side's files.
func (b *bench) subDir() (string, error) {
	b.seq++
	dir := filepath.Join(b.dir, fmt.Sprint(b.seq))
	return dir, b.fs.MkdirAll(dir)
}

func closeFS(fs disk.FS) {
	if c, ok := fs.(io.Closer); ok {
		c.Close()
	}
}

// skipError is why a cell cannot be measured here.
type skipError struct{ why string }

func (e *skipError) Error() string { return e.why }

func skip(format string, args ...any) error { return &skipError{fmt.Sprintf(format, args...)} }

// matches tells whether the user wants the cell.
func (o *Options) matches(c *Cell) bool {
	return (o.take == nil || o.take(c)) && (o.Only == "" || strings.Contains(strings.ToLower(c.Name()), strings.ToLower(o.Only)))
}
