// Package disklab measures what a disk is good for, on a directory of a real one or on a modelled one (io/hddsim): in order
// against at random, reads and writes, queue depths, what a sync costs, how many files may grow side by side, readers of
// cold data beside an appender, segments and growing ahead. From the figures follow words (Verdict) and settings (Recommend), both
// pure functions of a Result; Print, Page, Plots and Compare show it.
//
// A run is a plan of cells, each measured once for a short time. What a run may take of time and room is bounded:
// cells share the time that is left, and what is written before a sync is bounded by what the device was seen to take.
//
// Run works in a directory of its own below the one that it is given, and removes it whatever happens; another run may go
// on beside it, at the price of both's figures. Figures of a model carry Modelled wherever they go.
package disklab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"platter/bench/iobench"
	"platter/io/disk"
	"platter/io/profile"
)

// Group is what cells are about.
type Group string

// The groups, in the order of a run.
const (
	Device  Group = "device"  // the device itself: past the page cache
	Cached  Group = "cache"   // through the page cache, as the broker does
	Syncs   Group = "sync"    // what a sync costs
	Growing Group = "growing" // files that grow side by side
	Cold    Group = "cold"    // readers of cold data beside an appender
	Segment Group = "segment" // segment size and growing ahead
)

// Groups are all groups, in the order of a run.
var Groups = []Group{Device, Cached, Syncs, Growing, Cold, Segment}

// Titles of the groups, for people.
var Titles = map[Group]string{
	Device:  "The device itself, past the page cache",
	Cached:  "Through the page cache, as the broker does",
	Syncs:   "What a sync costs",
	Growing: "Files that grow side by side",
	Cold:    "Cold readers beside an appender",
	Segment: "Segment size and growing ahead",
}

// What a cell's operations are.
const (
	Read       = "read"
	Write      = "write"
	Sequential = "sequential"
	Random     = "random"
)

// Cell is one measurement: what was done, then what it gave. Sizes are bytes, latencies microseconds.
type Cell struct {
	Group        Group  `json:"group"`
	Name         string `json:"name"` // unique in a run: two runs are compared by it
	Modelled     bool   `json:"modelled"`
	Op           string `json:"op"`
	Pattern      string `json:"pattern"`
	SizeBytes    int64  `json:"size_bytes"`      // of one operation
	Depth        int    `json:"depth,omitempty"` // operations under way at once
	Files        int    `json:"files,omitempty"`
	SyncEach     bool   `json:"sync_each,omitempty"` // every write is synced before the next
	Readers      int    `json:"readers,omitempty"`
	Lane         bool   `json:"lane,omitempty"` // readers take turns, as in the broker
	Appender     bool   `json:"appender,omitempty"`
	SegmentBytes int64  `json:"segment_bytes,omitempty"`
	GrowAhead    bool   `json:"grow_ahead,omitempty"`

	Skipped string `json:"skipped,omitempty"` // why there are no figures
	Figures

	weight float64 // share of the run's time
}

// Figures are what a cell gave. Of a write that is not synced each time the seconds include the sync at its end, so that all
// bytes have reached the device. Latencies are of one operation (of the appender's, in cold cells; of write and sync, where
// each is synced).
type Figures struct {
	Ops         int64   `json:"ops"`
	Bytes       int64   `json:"bytes"`
	Seconds     float64 `json:"seconds"`
	CPUSeconds  float64 `json:"cpu_seconds,omitempty"` // of this process; modelled ones have none
	BytesPerSec float64 `json:"bytes_per_second"`
	OpsPerSec   float64 `json:"ops_per_second"`
	Low         float64 `json:"low,omitempty"` // of the bytes a second, over the rounds of a cell that has several
	High        float64 `json:"high,omitempty"`
	P50         float64 `json:"p50_us,omitempty"`
	P99         float64 `json:"p99_us,omitempty"`
	Max         float64 `json:"max_us,omitempty"`
	ReadBack    float64 `json:"read_back_bytes_per_second,omitempty"` // of one file in order, cold; segment cells
	Pieces      float64 `json:"pieces,omitempty"`                     // of a file on the device; modelled ones only
	Busy        float64 `json:"busy_seconds,omitempty"`               // of the device, by all its parts; modelled ones only
}

// Result is a run.
type Result struct {
	Bench    string `json:"bench"` // "disk"
	Modelled bool   `json:"modelled"`
	// On is where: a directory, or a model's name with its parameters.
	On          string           `json:"on"`
	Profile     *profile.Profile `json:"profile"` // as the kernel shows it; of a model, as it would
	Env         *iobench.Env     `json:"env,omitempty"`
	Direct      string           `json:"direct"`     // "yes", or why the device cells were left out
	SpanBytes   int64            `json:"span_bytes"` // what random positions were spread over
	BudgetBytes int64            `json:"budget_bytes,omitempty"`
	Seconds     float64          `json:"seconds"`
	Seed        uint64           `json:"seed"`
	Cells       []Cell           `json:"cells"`
	Verdict     []string         `json:"verdict"`
	Advice      []Advice         `json:"advice"`
}

// Options of a run.
type Options struct {
	Dir         string // real disk: where; "" with a Model
	Model       *Model // nil: a real disk
	Backend     string // I/O back-end; "": auto
	BudgetBytes int64  // room that files may take at a time
	Time        time.Duration
	Full        bool // the whole grid of sizes and depths
	Only        []Group
	Pick        func(*Cell) bool // only those cells of them; nil: all
	FilesMax    int              // most growing files; 0: 4,096
	Seed        uint64
	modelBytes  int64 // what a modelled cell writes at most, in tests, which take less of all; 0: modelBytes
	// Progress is told what is measured next, again when what it needs has been made; nil: nobody is.
	Progress func(done, total int, name string)
	// Measured is told of each cell that has figures; nil: nobody is. Its error ends the run.
	Measured func(Cell) error
}

// What Options are where nothing is said, and their bounds.
const (
	DefaultBudget = 512 << 20
	DefaultTime   = 75 * time.Second
	BudgetMin     = 16 << 20
)

// target is what is measured.
type target interface {
	// prepare makes what a group needs, before its first cell.
	prepare(ctx context.Context, g Group) error
	// measure fills in a cell within about d of real time. errSkip with a reason: it cannot be measured here.
	measure(ctx context.Context, c *Cell, d time.Duration) error
	describe(r *Result)
	close() error
}

// skip is why a cell has no figures.
type skip string

func (s skip) Error() string { return string(s) }

// Run measures. When ctx ends it returns its error, and has removed what it made.
func Run(ctx context.Context, o Options) (r *Result, err error) {
	if o.FilesMax == 0 {
		o.FilesMax = filesMax
	}
	var t target
	if o.Model != nil {
		t, err = newModelTarget(o)
	} else {
		// A call that waits for the disk holds one of the runtime's processors for a moment: with as few as a small machine has, many
		// at once would be limited by them, and not by the disk.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), slices.Max(allDepths))))
		t, err = newRealTarget(o)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := t.close(); cerr != nil {
			r, err = nil, errors.Join(err, cerr)
		}
	}()
	began := time.Now()
	r = &Result{Bench: "disk", Modelled: o.Model != nil, Seed: o.Seed, Cells: plan(o)}
	if err := measureAll(ctx, t, r, o, began); errors.Is(err, disk.ErrFull) {
		return nil, fmt.Errorf("the disk has become full, by others perhaps; a smaller --budget takes less: %w", err)
	} else if err != nil {
		return nil, err
	}
	t.describe(r)
	if !r.Modelled {
		r.Seconds = time.Since(began).Seconds()
	}
	r.Verdict, r.Advice = Verdict(r), Recommend(r)
	return r, nil
}

func measureAll(ctx context.Context, t target, r *Result, o Options, began time.Time) error {
	p, group := newPace(r.Cells, began, o.Time), Group("")
	tell := func(i int, name string) {
		if o.Progress != nil {
			o.Progress(i, len(r.Cells), name)
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		name := string(c.Group) + ": " + c.Name
		tell(i, name)
		if err := ctx.Err(); err != nil {
			return err
		}
		now := time.Now()
		share := p.share(c, now)
		c.Modelled = r.Modelled
		if !r.Modelled { // a model's time is virtual
			if d := expected(r.Cells[:i], c); p.leaves(c, d, share, now) {
				c.Skipped = string(tooLong(max(d, share)))
				continue
			}
		}
		if c.Group != group {
			group = c.Group
			if err := t.prepare(ctx, group); err != nil {
				return fmt.Errorf("%s: %w", group, err)
			}
			tell(i, name)
		}
		err := t.measure(ctx, c, share)
		var why skip
		switch {
		case errors.As(err, &why):
			c.Skipped = string(why)
		case err != nil:
			return fmt.Errorf("%s, %s: %w", c.Group, c.Name, err)
		case o.Measured != nil:
			if err := o.Measured(*c); err != nil {
				return err
			}
		}
	}
	tell(len(r.Cells), "")
	return nil
}

// loadMax bounds a result that is read.
const loadMax = 16 << 20

// Load reads what was written as JSON.
func Load(in io.Reader) (*Result, error) {
	p, err := io.ReadAll(io.LimitReader(in, loadMax+1))
	if err != nil {
		return nil, err
	}
	if len(p) > loadMax {
		return nil, fmt.Errorf("more than %d bytes: no result of bench disk", loadMax)
	}
	var r Result
	if err := json.Unmarshal(p, &r); err != nil {
		return nil, fmt.Errorf("no result of bench disk: %w", err)
	}
	if r.Bench != "disk" {
		return nil, fmt.Errorf("a result of bench %q, not of bench disk", r.Bench)
	}
	if r.Profile == nil {
		r.Profile = &profile.Profile{}
	}
	if k := r.Profile.Kind; k < profile.Unknown || k > profile.Memory {
		return nil, fmt.Errorf("no kind of disk has number %d", k)
	}
	return &r, nil
}

// find is the first cell for which ok holds and which has figures.
func (r *Result) find(ok func(c *Cell) bool) *Cell {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Skipped == "" && c.Ops > 0 && ok(c) {
			return c
		}
	}
	return nil
}

// device is the cell of the device itself, nil when there is none.
func (r *Result) device(op, pattern string, size int64, depth int) *Cell {
	return r.find(func(c *Cell) bool {
		return c.Group == Device && c.Op == op && c.Pattern == pattern && c.SizeBytes == size && c.Depth == depth
	})
}
