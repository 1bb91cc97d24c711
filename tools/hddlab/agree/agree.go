// Package agree lays three measurements of one disk beside each other: the model alone (io/hddsim in virtual time), and the
// loop-device lab, which is the same drive behind the real kernel, measured by `platter bench disk` and by fio (fio(1)). Where
// they differ, the difference is what the kernel adds or what the model leaves out. On any other disk it is the last two.
// Cell by cell fio measures right behind platter, so that what else goes on meets both.
//
// Rates come from wall time, and suffer where a machine is busy; the lab also counts how long its modelled drive was at
// work, which does not (Figure.Busy).
package agree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"platter/bench/disklab"
	"platter/tools/hddlab/lab"
)

// Options of a comparison.
type Options struct {
	Dir         string
	Lab         *lab.Lab       // whose Mount Dir is; nil: another disk
	Drive       *disklab.Model // the lab's drive, as the model takes it; nil: no model
	BudgetBytes int64          // of files in Dir; half of it is what random positions are spread over
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

// Run compares, cell by cell. Dir has room for two and a half budgets, and nobody else uses a lab.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	if err := Check(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "fio-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f := fio{dir: dir, span: o.BudgetBytes / 2 >> 20 << 20, time: o.CellTime}
	for range o.Rounds {
		if err := o.round(ctx, &rows, f); err != nil {
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

// busy is how long the lab's drive has been at work; 0 of another disk.
func (o *Options) busy() (float64, error) {
	if o.Lab == nil {
		return 0, nil
	}
	s, err := o.Lab.Stats()
	return s.Busy.Seconds(), err
}

// round measures all cells once, each by platter and then by fio.
func (o *Options) round(ctx context.Context, rows *[]Row, f fio) error {
	if err := f.layOut(ctx); err != nil {
		return fmt.Errorf("fio: %w", err)
	}
	var before float64
	var failed error
	run := disklab.Options{Dir: o.Dir, BudgetBytes: o.BudgetBytes, Seed: o.Seed, FilesMax: 256,
		Time: time.Hour, // its cells are bounded each
		Pick: func(c *disklab.Cell) bool { return main(c) && (o.Pick == nil || o.Pick(c)) }}
	run.Progress = func(_, _ int, name string) {
		o.tell("platter: " + name)
		before, failed = o.busy()
	}
	i := 0
	run.Measured = func(c disklab.Cell) error {
		after, err := o.busy()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if i == len(*rows) {
			*rows = append(*rows, Row{Cell: c})
		}
		row := &(*rows)[i]
		if row.Cell.Name != c.Name {
			return fmt.Errorf("%s was left out in another round", c.Name)
		}
		i++
		ours := Figure{Ops: c.Ops, Bytes: c.Bytes, Seconds: c.Seconds, Busy: after - before}
		o.tell("fio: " + c.Name)
		got, err := o.fio(ctx, f, &c, ours)
		if err != nil {
			return fmt.Errorf("fio, %s: %w", c.Name, err)
		}
		row.Platter, row.Fio = append(row.Platter, ours), append(row.Fio, got)
		return nil
	}
	_, err := disklab.Run(ctx, run)
	return err
}

// fio plays a cell: as much as it did in platter's round, or as long.
func (o *Options) fio(ctx context.Context, f fio, c *disklab.Cell, like Figure) (got Figure, err error) {
	args := f.job(c, like)
	if len(args) == 0 {
		return got, errors.New("no job for it")
	}
	if err := f.settle(); err != nil {
		return got, err
	}
	before, err := o.busy()
	if err != nil {
		return got, err
	}
	if got, err = f.play(ctx, args...); err != nil {
		return got, err
	}
	after, err := o.busy()
	got.Busy = after - before
	return got, errors.Join(err, f.clear())
}

// model plays the row's cell on the model, with operations and bytes as the lab had them in the middle round.
func (o *Options) model(r *Row) error {
	if o.Drive == nil {
		return nil
	}
	o.tell("model: " + r.Cell.Name)
	m, c, like := *o.Drive, r.Cell, Median(r.Platter)
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
