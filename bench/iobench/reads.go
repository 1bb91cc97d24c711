package iobench

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"platter/io/disk"
)

const (
	warmBytes = 64 << 20 // of all files of a warm read
	// coldStride lies between the blocks of a cold round, which are half as large at most, so that none is
	// read ahead with another.
	coldStride = 512 << 10
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

// cold reads what was just dropped from the page cache: Depth blocks far from each other, of one file that
// all cold reads of a run share.
type cold struct {
	*based
	how   string
	want  []disk.Read
	judge disk.File // the file through the backend that can drop pages and tell residency
}

// coldBytes is the size of that file.
const coldBytes = deep * coldStride

func (b *bench) newCold(base *based, how string) (load, error) {
	path := filepath.Join(b.dir, "cold")
	caps := b.fs.Caps(b.dir)
	if !caps.Advise || !caps.Resident {
		return nil, skip("what is in the page cache can neither be told nor dropped here")
	}
	if coldBytes > b.o.BudgetBytes {
		return nil, skip("%s for cold reads are more than the budget of %s", Size(coldBytes), Size(int(b.o.BudgetBytes)))
	}
	if b.judge == nil {
		f, err := b.fs.Open(path, disk.CreateNew)
		if err != nil {
			return nil, err
		}
		b.judge = f
		if err := fill(f, coldBytes); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil { // dirty pages cannot be dropped
			return nil, err
		}
	}
	f, err := base.fs.Open(path, disk.ReadOnly)
	if err != nil {
		return nil, err
	}
	base.files = append(base.files, f)
	c := &cold{based: base, how: how, want: buffers(base.depth, base.size), judge: b.judge}
	for i := range c.want {
		c.want[i].File, c.want[i].Pos = f, int64(i)*coldStride
	}
	return c, nil
}

// chill drops the file's pages and sees that they are gone.
func (c *cold) chill() error {
	// A page that is still on its way to a list of the kernel's, or that a read ahead has in hand, stays.
	const tries, pause = 50, 2 * time.Millisecond
	for try := range tries {
		if try > 0 {
			time.Sleep(pause)
		}
		if err := c.judge.Advise(0, coldBytes, disk.DontNeed); err != nil {
			return err
		}
		if n, err := c.judge.Resident(0, coldBytes); err != nil || n == 0 {
			return err
		}
	}
	return skip("the file's pages stay in the page cache (a file system in memory?)")
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
