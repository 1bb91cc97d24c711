package iobench

import (
	"slices"

	"platter/io/backend"
	"platter/io/disk"
)

// The depth of a queue that is deep, and of sets.
const deep = 64

// plan lists the cells of a run.
func plan(o Options, fs disk.FS, dir string) []Cell {
	p := planner{o: o, full: o.Full, reference: "portable"}
	for _, name := range backend.Built() {
		other, _, err := backend.Select(name)
		if err != nil {
			continue // named among the backends that cannot run here
		}
		closeFS(other)
		p.backends = append(p.backends, name)
	}
	if slices.Contains(p.backends, "psync") {
		p.reference = "psync"
	}
	p.chosen = map[string]string{}
	for _, c := range backend.Explain(fs, []string{dir}) {
		p.chosen[c.Op] = c.Backend
	}
	p.coalescing()
	p.autoChoice()
	p.others()
	p.coldReads()
	p.sends()
	p.empty()
	return p.cells
}

type planner struct {
	o         Options
	full      bool
	backends  []string          // that run here
	reference string            // of plain system calls, where there are such
	chosen    map[string]string // by operation of backend.Explain
	cells     []Cell
}

func (p *planner) add(g Group, op string, size, files, depth int, a, b Side) {
	c := Cell{Group: g, Op: op, SizeBytes: size, Files: files, Depth: depth, A: a, B: b}
	if p.o.matches(&c) {
		p.cells = append(p.cells, c)
	}
}

// pick is the quick list or the full one.
func (p *planner) pick(quick, full []int) []int {
	if p.full {
		return full
	}
	return quick
}

// depthOf is how many operations of a size make a round.
func depthOf(size int) int { return max(1, min(deep, roundBytesMax/size)) }

var (
	allSizes = []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
	allFiles = []int{1, 16, 256, 2000}
)

func (p *planner) coalescing() {
	pair := func(name string, size, files, depth int) {
		p.add(Coalescing, OpAppend, size, files, depth, Side{Backend: name, How: Coalesced}, Side{Backend: name, How: Plain})
	}
	for _, files := range p.pick([]int{1, 256, 2000}, allFiles) {
		for _, size := range p.pick([]int{1 << 10, 4 << 10, 64 << 10, 1 << 20}, allSizes) {
			pair("auto", size, files, depthOf(size))
		}
	}
	for _, depth := range p.pick([]int{2, 8}, []int{2, 4, 8, 16, 32}) {
		for _, size := range []int{1 << 10, 4 << 10} {
			pair("auto", size, 16, depth)
		}
	}
	for _, name := range p.backends {
		if name == p.chosen[backend.OpAppend] {
			continue // auto has shown it
		}
		for _, size := range p.pick([]int{1 << 10, 64 << 10}, allSizes) {
			pair(name, size, 16, depthOf(size))
		}
	}
}

// one is a cell of an operation in its usual shape.
type one struct {
	op, how      string
	explained    string // of backend.Explain
	quick, sizes []int
}

var usual = []one{
	{OpAppend, Coalesced, backend.OpAppend, []int{1 << 10, 4 << 10, 64 << 10, 1 << 20}, allSizes},
	{OpAppend, Plain, backend.OpAppend, []int{1 << 10, 64 << 10}, allSizes},
	{OpRead, Plain, backend.OpRead, []int{4 << 10, 64 << 10, 1 << 20}, allSizes},
	{OpRead, Batch, backend.OpReadBatch, []int{4 << 10, 64 << 10}, allSizes},
	{OpCold, Batch, backend.OpReadCold, []int{64 << 10, 256 << 10}, allSizes},
	{OpSync, Set, backend.OpSyncSet, []int{4 << 10}, []int{4 << 10, 64 << 10}},
	{OpSend, AsUsual, backend.OpSend, []int{4 << 10, 64 << 10, 256 << 10, 1 << 20}, allSizes},
}

// shape is the files and the depth that an operation of a size is measured with.
func shape(op string, size int) (files, depth int) {
	switch op {
	case OpAppend:
		return 16, depthOf(size)
	case OpSync:
		return deep, deep
	case OpCold:
		return 1, min(deep, 16<<20/size)
	case OpSend:
		return 1, max(1, min(16, roundBytesMax/size))
	}
	return 1, depthOf(size)
}

// autoChoice sets auto beside the backend that it chose.
func (p *planner) autoChoice() {
	for _, u := range usual {
		chosen := p.chosen[u.explained]
		if !slices.Contains(p.backends, chosen) {
			continue
		}
		for _, size := range p.pick(u.quick, u.sizes) {
			files, depth := shape(u.op, size)
			p.add(AutoChoice, u.op, size, files, depth, Side{Backend: "auto", How: u.how}, Side{Backend: chosen, How: u.how})
		}
	}
}

// others sets each backend beside that of plain system calls.
func (p *planner) others() {
	quick := map[string][]int{
		OpAppend + Coalesced: {1 << 10, 64 << 10}, OpRead + Plain: {4 << 10}, OpRead + Batch: {64 << 10},
		OpCold + Batch: {64 << 10}, OpSync + Set: {64 << 10}, OpSend + AsUsual: {1 << 20},
	}
	for _, name := range p.backends {
		if name == p.reference {
			continue
		}
		for _, u := range usual {
			for _, size := range p.pick(quick[u.op+u.how], u.sizes) {
				files, depth := shape(u.op, size)
				p.add(Backends, u.op, size, files, depth, Side{Backend: name, How: u.how}, Side{Backend: p.reference, How: u.how})
			}
		}
	}
}

// coldReads sets ways to read a set beside a goroutine each.
func (p *planner) coldReads() {
	for _, size := range p.pick([]int{64 << 10}, []int{4 << 10, 64 << 10, 256 << 10}) {
		_, depth := shape(OpCold, size)
		against := func(a Side) { p.add(Cold, OpCold, size, 1, depth, a, Side{Backend: p.reference, How: Goroutines}) }
		for _, name := range p.backends {
			against(Side{Backend: name, How: Batch})
			if name != "portable" {
				against(Side{Backend: name, How: BatchKept})
			}
		}
		against(Side{Backend: p.reference, How: Plain})
	}
}

// sends sets every way to send beside sendfile.
func (p *planner) sends() {
	if p.reference != "psync" {
		return
	}
	for _, size := range p.pick([]int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}, allSizes) {
		_, depth := shape(OpSend, size)
		for _, m := range []disk.SendMethod{disk.SendCopy, disk.SendSplice, disk.SendMapped} {
			p.add(Sends, OpSend, size, 1, depth, Side{Backend: p.reference, How: string(m)},
				Side{Backend: p.reference, How: string(disk.SendFile)})
		}
	}
}

func (p *planner) empty() {
	if !slices.Contains(p.backends, "uring") {
		return
	}
	for _, depth := range p.pick([]int{1, deep, 256}, []int{1, 8, deep, 256, 1024}) {
		p.add(Empty, OpNop, 0, 1, depth, Side{Backend: "uring", How: ByRing}, Side{Backend: "uring", How: BareRing})
	}
}
