package disklab

import (
	"fmt"
	"slices"

	"platter/io/profile"
)

const (
	small        = 4 << 10
	long         = 1 << 20
	longest      = 4 << 20
	filesMax     = 4096
	batch        = 64 << 10 // of an append that is not measured for its size
	readers      = 8
	segmentFiles = 8
)

var (
	sizes     = []int64{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}
	allDepths = []int{1, 2, 4, 8, 16, 32}
	twoDepths = []int{1, 32}
)

// plan is the cells of a run.
func plan(o Options) (cells []Cell) {
	for _, c := range slices.Concat(deviceCells(o.Full), cachedCells(), syncCells(), growingCells(o.FilesMax), coldCells(), segmentCells()) {
		if (len(o.Only) == 0 || slices.Contains(o.Only, c.Group)) && (o.Pick == nil || o.Pick(&c)) {
			cells = append(cells, c)
		}
	}
	return cells
}

// Cells are those that a run with o would measure, without figures.
func Cells(o Options) []Cell {
	if o.FilesMax == 0 {
		o.FilesMax = filesMax
	}
	return plan(o)
}

func deviceCells(full bool) (cells []Cell) {
	for _, op := range []string{Read, Write} {
		for _, pattern := range []string{Sequential, Random} {
			for _, size := range sizes {
				depths := twoDepths
				if full || pattern == Random && (size == small || size == longest && op == Read) {
					depths = allDepths
				}
				for _, depth := range depths {
					cells = append(cells, Cell{
						Group: Device, Op: op, Pattern: pattern, SizeBytes: size, Depth: depth, weight: 0.5,
						Name: fmt.Sprintf("%s %s %s, depth %d", pattern, op, profile.Size(size), depth),
					})
				}
			}
		}
	}
	return cells
}

func cachedCells() (cells []Cell) {
	for _, size := range []int64{4 << 10, 64 << 10, 1 << 20} {
		cells = append(cells, Cell{Group: Cached, Op: Write, Pattern: Sequential, SizeBytes: size, Depth: 1, weight: 1,
			Name: fmt.Sprintf("append %s, one sync at the end", profile.Size(size))})
	}
	for _, size := range []int64{4 << 10, 64 << 10, 1 << 20} {
		cells = append(cells, Cell{Group: Cached, Op: Read, Pattern: Sequential, SizeBytes: size, Depth: 1, weight: 0.7,
			Name: fmt.Sprintf("cold sequential read %s", profile.Size(size))})
	}
	cells = append(cells, Cell{Group: Cached, Op: Read, Pattern: Random, SizeBytes: small, Depth: 1, weight: 0.7,
		Name: "cold random read 4 KiB"})
	for _, depth := range twoDepths {
		cells = append(cells, Cell{Group: Cached, Op: Write, Pattern: Random, SizeBytes: small, Depth: depth, SyncEach: true, weight: 0.7,
			Name: fmt.Sprintf("random write 4 KiB, each synced, depth %d", depth)})
	}
	return cells
}

func syncCells() (cells []Cell) {
	for _, size := range []int64{4 << 10, 64 << 10, 1 << 20} {
		cells = append(cells, Cell{Group: Syncs, Op: Write, Pattern: Sequential, SizeBytes: size, Depth: 1, Files: 1, SyncEach: true, weight: 1,
			Name: fmt.Sprintf("append %s and sync", profile.Size(size))})
	}
	return append(cells, Cell{Group: Syncs, Op: Write, Pattern: Sequential, SizeBytes: small, Depth: 1, Files: 64, SyncEach: true, weight: 1,
		Name: "append 4 KiB to each of 64 files, sync them as a set"})
}

func growingCells(most int) (cells []Cell) {
	for _, each := range []bool{false, true} {
		for n := 1; n <= most; n *= 4 {
			name := fmt.Sprintf("%d files", n)
			if n == 1 {
				name = "1 file"
			}
			if each {
				name += ", every append synced"
			} else {
				name += ", one sync at the end"
			}
			cells = append(cells, Cell{Group: Growing, Op: Write, Pattern: Sequential, SizeBytes: batch, Files: n, SyncEach: each,
				Name: name, weight: 1.2})
		}
	}
	return cells
}

func coldCells() []Cell {
	cells := []Cell{
		{Name: "appender alone", Appender: true},
		{Name: "one reader alone", Readers: 1},
		{Name: fmt.Sprintf("%d readers, each for itself", readers), Readers: readers, Appender: true},
		{Name: fmt.Sprintf("%d readers in turns", readers), Readers: readers, Lane: true, Appender: true},
	}
	for i := range cells {
		cells[i].Group, cells[i].Op, cells[i].Pattern, cells[i].SizeBytes = Cold, Read, Sequential, batch
	}
	cells[0].weight = 20 // it stands for all: they are measured in turn
	return cells
}

func segmentCells() (cells []Cell) {
	for _, size := range []int64{2 << 20, 8 << 20, 32 << 20} {
		for _, grow := range []bool{false, true} {
			name := fmt.Sprintf("%d files, segments of %s", segmentFiles, profile.Size(size))
			if grow {
				name += ", grown ahead"
			}
			cells = append(cells, Cell{Group: Segment, Op: Write, Pattern: Sequential, SizeBytes: batch, Files: segmentFiles, SegmentBytes: size,
				GrowAhead: grow, weight: 1.5, Name: name})
		}
	}
	return cells
}
