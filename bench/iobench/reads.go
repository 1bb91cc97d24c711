package iobench

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"

	"platter/io/disk"
)

const (
	warmBytes = 64 << 20 // of all files of a warm read
	// coldStride lies between the blocks of a cold round, so that none is read ahead with another.
	coldStride = 2 << 20
)

// reads reads what is in the page cache, at seeded random positions.
type reads struct {
	*based
	how  string
	rnd  *rand.Rand
	each int64 // bytes of a file
	want []disk.Read
}

func (b *bench) newReads(base *based, how string, files int) (load, error) {
	each := max(min(warmBytes, b.o.BudgetBytes/4)/int64(files), int64(base.size))
	each -= each % int64(base.size)
	r := &reads{based: base, how: how, rnd: rand.New(rand.NewPCG(b.o.Seed, 1)), each: each}
	if err := base.create(files, each); err != nil {
		return nil, err
	}
	r.want = buffers(base.depth, base.size)
	return r, nil
}

func buffers(count, size int) []disk.Read {
	out := make([]disk.Read, count)
	for i := range out {
		out[i].Buf = make([]byte, size)
	}
	return out
}

func (r *reads) run(m *meter, n int) error {
	m.start()
	defer m.stop()
	for range n {
		for i := range r.want {
			w := &r.want[i]
			w.File = r.files[r.rnd.IntN(len(r.files))]
			w.Pos = r.rnd.Int64N(r.each/int64(r.size)) * int64(r.size)
		}
		if err := readAll(r.fs, r.want, r.how, false); err != nil {
			return err
		}
		m.round(r.roundBytes())
	}
	return nil
}

// readAll does the reads in one of the ways; leaveNothing: batches leave no pages behind.
func readAll(fs disk.FS, want []disk.Read, how string, leaveNothing bool) error {
	one := func(w *disk.Read) { w.N, w.Err = w.File.ReadAt(w.Buf, w.Pos) }
	switch how {
	case Batch, BatchKept:
		fs.ReadBatch(want, leaveNothing)
	case Goroutines:
		var wg sync.WaitGroup
		for i := range want {
			wg.Go(func() { one(&want[i]) })
		}
		wg.Wait()
	default:
		for i := range want {
			one(&want[i])
		}
	}
	for i := range want {
		if w := &want[i]; w.N != len(w.Buf) {
			return fmt.Errorf("read %d of %d bytes of %s at %d: %w", w.N, len(w.Buf), w.File.Path(), w.Pos, w.Err)
		}
	}
	return nil
}

// cold reads what was just dropped from the page cache: Depth blocks far from each other.
type cold struct {
	*based
	how    string
	want   []disk.Read
	judges []disk.File // the same files through the backend that can drop and tell residency
	each   int64
}

func (b *bench) newCold(base *based, how string, files int) (load, error) {
	caps := b.check.Caps(base.dir)
	if !caps.Advise || !caps.Resident {
		return nil, skip("what is in the page cache can neither be told nor dropped here")
	}
	perFile := (base.depth + files - 1) / files
	total := int64(perFile) * coldStride * int64(files)
	if total > b.o.BudgetBytes {
		return nil, skip("%s for a cold read are more than the budget of %s", Size(int(total)), Size(int(b.o.BudgetBytes)))
	}
	c := &cold{based: base, how: how, want: buffers(base.depth, base.size), each: int64(perFile) * coldStride}
	if err := base.create(files, c.each); err != nil {
		return nil, err
	}
	for i := range c.want {
		c.want[i].File = base.files[i%files]
		c.want[i].Pos = int64(i/files) * coldStride
	}
	for i := range base.files {
		f, err := b.check.Open(filepath.Join(base.dir, fmt.Sprint(i)), disk.ReadWrite)
		if err != nil {
			return nil, err
		}
		c.judges = append(c.judges, f)
	}
	return c, b.check.Sync(c.judges) // dirty pages cannot be dropped
}

func (c *cold) close() error {
	for _, f := range c.judges {
		f.Close()
	}
	return c.based.close()
}

// chill drops the files' pages and sees that they are gone.
func (c *cold) chill() error {
	const tries = 20
	for range tries {
		left := int64(0)
		for _, f := range c.judges {
			if err := f.Advise(0, c.each, disk.DontNeed); err != nil {
				return err
			}
			n, err := f.Resident(0, c.each)
			if err != nil {
				return err
			}
			left += n
		}
		if left == 0 {
			return nil
		}
	}
	return skip("the pages of the files stay in the page cache (a file system in memory?)")
}

func (c *cold) run(m *meter, n int) error {
	for range n {
		if err := c.chill(); err != nil {
			return err
		}
		if err := c.read(m); err != nil {
			return err
		}
	}
	return nil
}

func (c *cold) read(m *meter) error {
	m.start()
	defer m.stop()
	defer m.round(c.roundBytes())
	return readAll(c.fs, c.want, c.how, c.how == Batch)
}
