package iobench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"platter/io/backend"
	ioconn "platter/io/conn"
	"platter/io/disk"
)

// The operations.
const (
	OpAppend = "append"
	OpRead   = "read" // from the page cache
	OpCold   = "cold read"
	OpSync   = "sync"
	OpSend   = "send"
	OpNop    = "empty operation"
)

// The ways.
const (
	Plain      = "one by one"      // a call each, on one goroutine
	Coalesced  = "one write"       // all as one vectored write
	Batch      = "one batch"       // FS.ReadBatch; cold ones as reads that leave nothing in the page cache
	BatchKept  = "one batch, kept" // cold ones too as reads that stay in the page cache
	Goroutines = "goroutines"      // a call each, on a goroutine each
	Set        = "one set"         // FS.Sync
	ByRing     = "ring"
	BareRing   = "bare ring"
	AsUsual    = "as usual" // sends: copied up to the limit, above it by the backend's own way
)

const (
	roundBytesMax = 4 << 20  // of one round
	runBytesMax   = 64 << 20 // of one run that makes pages dirty
)

// load makes one side of a cell.
func (b *bench) load(c *Cell, s *Side) (l load, err error) {
	if s.How == BareRing {
		return newBareNops(c.Depth)
	}
	fs, _, err := backend.Select(s.Backend)
	if err != nil {
		return nil, skip("%v", err)
	}
	base := &based{fs: fs, size: c.SizeBytes, depth: c.Depth}
	defer func() {
		if err != nil {
			closeFS(fs)
		}
	}()
	if base.dir, err = b.subDir(); err != nil {
		return nil, err
	}
	switch c.Op {
	case OpAppend:
		l = &appends{based: base, plain: s.How == Plain, bytesMax: min(runBytesMax, b.o.BudgetBytes/4)}
		err = base.create(c.Files, 0)
	case OpRead:
		l, err = b.newReads(base, s.How, c.Files)
	case OpCold:
		l, err = b.newCold(base, s.How)
	case OpSync:
		l, err = b.newSyncs(base, s.How == Set, c.Files)
	case OpSend:
		l, err = b.newSends(base, s.How)
	case OpNop:
		if err = base.create(1, 4096); err == nil {
			l, err = newRingNops(base)
		}
	default:
		err = fmt.Errorf("no operation %q", c.Op)
	}
	if err != nil {
		base.drop()
		return nil, err
	}
	return l, nil
}

// based is what loads have in common: a backend and files of its own.
type based struct {
	fs    disk.FS
	dir   string
	size  int
	depth int
	files []disk.File
}

func (b *based) backend() disk.FS  { return b.fs }
func (b *based) roundBytes() int64 { return int64(b.size) * int64(b.depth) }
func (b *based) roundsMax() int    { return 0 }
func (b *based) close() error {
	err := b.drop()
	closeFS(b.fs)
	return err
}

// drop removes the files.
func (b *based) drop() error {
	for _, f := range b.files {
		f.Close()
	}
	b.files = nil
	return b.fs.RemoveAll(b.dir)
}

// create opens new files of so many bytes each.
func (b *based) create(count int, fileBytes int64) error {
	if count+descriptorsSpare > ioconn.DescriptorLimit() {
		return skip("%d files are more than this process may open", count)
	}
	for i := range count {
		f, err := b.fs.Open(filepath.Join(b.dir, fmt.Sprint(i)), disk.CreateNew)
		if err != nil {
			return err
		}
		b.files = append(b.files, f)
		if err := fill(f, fileBytes); err != nil {
			return err
		}
	}
	return nil
}

// fill writes n bytes.
func fill(f disk.File, n int64) error {
	chunk := noise(int(min(n, 1<<20)))
	for pos := int64(0); pos < n; {
		wrote, err := f.WriteV([][]byte{chunk[:min(int64(len(chunk)), n-pos)]}, pos)
		if err != nil {
			return err
		}
		pos += wrote
	}
	return nil
}

// descriptorsSpare is what the process needs beside a cell's files.
const descriptorsSpare = 64

// noise is bytes that no layer below can make smaller.
func noise(n int) []byte {
	p := make([]byte, n)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := 0; i+8 <= n; i += 8 {
		v := rnd.Uint64()
		for j := range 8 {
			p[i+j] = byte(v >> (8 * j))
		}
	}
	return p
}

// appends appends Depth buffers a round to one file, and goes on to the next. Afterwards all is cut off
// again, so that nothing is left to write back.
type appends struct {
	*based
	plain    bool
	bytesMax int64
	next     int
	ends     []int64
	bufs     [][]byte
}

func (a *appends) roundsMax() int { return max(1, int(a.bytesMax/a.roundBytes())) }

func (a *appends) run(m *meter, n int) error {
	if a.bufs == nil {
		a.ends = make([]int64, len(a.files))
		p := noise(a.size)
		for range a.depth {
			a.bufs = append(a.bufs, p)
		}
	}
	err := a.write(m, n)
	for i, end := range a.ends {
		if end == 0 {
			continue
		}
		if cut := a.files[i].Truncate(0); err == nil {
			err = cut
		}
		a.ends[i] = 0
	}
	return err
}

func (a *appends) write(m *meter, n int) error {
	m.start()
	defer m.stop()
	for range n {
		i := a.next % len(a.files)
		a.next++
		f, end := a.files[i], a.ends[i]
		if a.plain {
			for j := range a.bufs {
				wrote, err := f.WriteV(a.bufs[j:j+1], end)
				if err != nil {
					return err
				}
				end += wrote
			}
		} else {
			wrote, err := f.WriteV(a.bufs, end)
			if err != nil {
				return err
			}
			end += wrote
		}
		a.ends[i] = end
		m.round(a.roundBytes())
	}
	return nil
}

// syncs makes Depth files dirty, untimed, and syncs them.
type syncs struct {
	*based
	set bool
	// The same files through one backend for all, which makes them dirty.
	dirty []disk.File
	pos   int64
	data  []byte
}

// syncBytesMax is how far the files of syncs grow before they begin anew.
const syncBytesMax = 8 << 20

func (b *bench) newSyncs(base *based, set bool, files int) (load, error) {
	s := &syncs{based: base, set: set, data: noise(base.size)}
	if err := base.create(files, 0); err != nil {
		return nil, err
	}
	for _, f := range base.files {
		d, err := b.fs.Open(f.Path(), disk.ReadWrite)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.dirty = append(s.dirty, d)
	}
	return s, nil
}

func (s *syncs) close() error {
	for _, f := range s.dirty {
		f.Close()
	}
	return s.based.close()
}

func (s *syncs) run(m *meter, n int) error {
	for range n {
		for _, f := range s.dirty {
			if _, err := f.WriteV([][]byte{s.data}, s.pos); err != nil {
				return err
			}
		}
		if s.pos += int64(s.size); s.pos+int64(s.size) > syncBytesMax {
			s.pos = 0
		}
		if err := s.sync(m); err != nil {
			return err
		}
	}
	return nil
}

func (s *syncs) sync(m *meter) error {
	m.start()
	defer m.stop()
	defer m.round(s.roundBytes())
	if s.set {
		return s.fs.Sync(s.files)
	}
	for _, f := range s.files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}
