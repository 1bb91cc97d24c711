// Package agree lays three measurements of one disk beside each other: the model alone (io/hddsim in virtual time), and the
// loop-device lab, which is the same drive behind the real kernel, measured by `platter bench disk` and by fio (fio(1)). Where
// they differ, the difference is what the kernel adds or what the model leaves out.
//
// Rates come from wall time, and suffer where a machine is busy; the lab also counts how long its modelled drive was at
// work, which does not (Figure.Busy).
package agree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"platter/bench/disklab"
	"platter/tools/hddlab/lab"
)

// Options of a comparison.
type Options struct {
	Lab         *lab.Lab
	Drive       disklab.Model // the lab's drive, as the model takes it
	BudgetBytes int64         // of files in the lab; half of it is what random positions are spread over
	CellTime    time.Duration
	Rounds      int
	Seed        uint64
	// Pick is which of the main cells are compared; nil: all.
	Pick func(*disklab.Cell) bool
	// Progress is told what is done next; nil: nobody is.
	Progress func(what string)
}

// Figure is one measurement of a cell.
type Figure struct {
	Ops, Bytes int64
	Seconds    float64
	Busy       float64 // seconds that the drive was at work
}

// PerSec is operations a second.
func (f Figure) PerSec() float64 { return ratio(float64(f.Ops), f.Seconds) }

// BusyEach is the drive's seconds for one operation.
func (f Figure) BusyEach() float64 { return ratio(f.Busy, float64(f.Ops)) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Row is a cell with all that was measured of it. Platter and Fio are rounds, in order.
type Row struct {
	Cell    disklab.Cell
	Model   Figure
	Platter []Figure
	Fio     []Figure
}

// main are the cells that the three should agree on.
func main(c *disklab.Cell) bool {
	const small, long = 4 << 10, 1 << 20
	switch c.Group {
	case disklab.Device:
		return c.Pattern == disklab.Sequential && c.SizeBytes == long && (c.Depth == 1 || c.Depth == 32) ||
			c.Pattern == disklab.Random && c.SizeBytes == small && (c.Depth == 1 || c.Depth == 32)
	case disklab.Cached:
		return c.SizeBytes == long || c.Pattern == disklab.Random
	case disklab.Syncs:
		return c.Files == 1 && c.SizeBytes == small
	case disklab.Growing:
		return !c.SyncEach && (c.Files == 1 || c.Files == 64 || c.Files == 256)
	}
	return false
}

// Run compares, cell by cell. The lab has room for a budget and a half, and nobody else uses it.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	if err := Check(); err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Lab.Mount, "fio")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f := fio{dir: dir, span: o.BudgetBytes / 2 >> 20 << 20, time: o.CellTime, lab: o.Lab}
	for round := range o.Rounds {
		if err := o.platter(ctx, &rows); err != nil {
			return nil, fmt.Errorf("platter bench disk, round %d: %w", round+1, err)
		}
		if err := f.layOut(ctx); err != nil {
			return nil, err
		}
		for i := range rows {
			r := &rows[i]
			o.tell(fmt.Sprintf("round %d: fio: %s", round+1, r.Cell.Name))
			got, err := f.run(ctx, &r.Cell, r.Platter[round])
			if err != nil {
				return nil, fmt.Errorf("fio, %s: %w", r.Cell.Name, err)
			}
			r.Fio = append(r.Fio, got)
		}
		if err := f.clear(); err != nil { // the next round finds the disk as this one did
			return nil, err
		}
	}
	for i := range rows {
		if err := o.model(&rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (o *Options) tell(what string) {
	if o.Progress != nil {
		o.Progress(what)
	}
}

// platter measures all cells in the lab once, with what the drive did at each.
func (o *Options) platter(ctx context.Context, rows *[]Row) error {
	var at []lab.Stats
	var failed error
	cells := 0
	run := disklab.Options{Dir: o.Lab.Mount, BudgetBytes: o.BudgetBytes, Seed: o.Seed, FilesMax: 256,
		Pick: func(c *disklab.Cell) bool { return main(c) && (o.Pick == nil || o.Pick(c)) }}
	run.Progress = func(done, total int, name string) {
		cells = total
		s, err := o.Lab.Stats()
		if at = append(at, s); err != nil {
			failed = err
		}
		o.tell("platter: " + name)
	}
	run.Time = o.CellTime * time.Duration(20) // more than its cells take: they are bounded each
	r, err := disklab.Run(ctx, run)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	if len(at) != cells+1 {
		return fmt.Errorf("%d cells, told of %d times", cells, len(at))
	}
	if *rows == nil {
		*rows = make([]Row, cells)
	}
	for i := range r.Cells {
		c := r.Cells[i]
		if c.Skipped != "" {
			return fmt.Errorf("%s was left out: %s", c.Name, c.Skipped)
		}
		row := &(*rows)[i]
		row.Cell = c
		row.Platter = append(row.Platter, Figure{Ops: c.Ops, Bytes: c.Bytes, Seconds: c.Seconds, Busy: at[i+1].Sub(at[i]).Busy.Seconds()})
	}
	return nil
}

// model plays the row's cell on the model, with operations and bytes as the lab had them in the middle round.
func (o *Options) model(r *Row) error {
	o.tell("model: " + r.Cell.Name)
	m, c, like := o.Drive, r.Cell, Median(r.Platter)
	if c.Op == disklab.Write && c.Pattern == disklab.Sequential && like.Ops > 0 {
		c.SizeBytes = like.Bytes / like.Ops
	}
	if err := m.Check(); err != nil {
		return err
	}
	got, err := m.Measure(c, like.Bytes, o.Seed)
	r.Model = Figure{Ops: got.Ops, Bytes: got.Bytes, Seconds: got.Seconds, Busy: got.Busy}
	return err
}

// Median is the figure in the middle, by rate.
func Median(figures []Figure) Figure {
	if len(figures) == 0 {
		return Figure{}
	}
	sorted := slices.SortedFunc(slices.Values(figures), func(a, b Figure) int {
		switch {
		case a.Rate() < b.Rate():
			return -1
		case a.Rate() > b.Rate():
			return 1
		}
		return 0
	})
	return sorted[len(sorted)/2]
}

// Rate is bytes a second.
func (f Figure) Rate() float64 { return ratio(float64(f.Bytes), f.Seconds) }
