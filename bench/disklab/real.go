package disklab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"platter/bench/iobench"
	"platter/bench/spindlebench"
	"platter/engine/segment"
	"platter/io/backend"
	"platter/io/disk"
	"platter/io/profile"
	"platter/io/rawdisk"
)

// realTarget is a directory on a disk.
type realTarget struct {
	fs      disk.FS
	o       Options
	dir     string // the run's own; "" before it is made
	lock    io.Closer
	profile profile.Profile
	env     iobench.Env
	growth  segment.Growth
	span    disk.File // what is read, and overwritten past the page cache
	size    int64
	next    int64 // where the next cell in order begins: what the last one has read is in the disk's own cache, perhaps
	raw     *rawdisk.File
	direct  string
	rate    float64 // bytes a second that the device was seen to write
	cold    map[string][]spindlebench.Figures
	noCold  error // why there are none
	made    int
	payload []byte
}

func newRealTarget(o Options) (t *realTarget, err error) {
	fs, _, err := backend.Select(o.Backend)
	if err != nil {
		return nil, err
	}
	t = &realTarget{fs: fs, o: o, rate: 32e6, direct: "not tried", payload: make([]byte, longest)}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
			t = nil
		}
	}()
	info, err := fs.Stat(o.Dir)
	if err != nil {
		return t, err
	}
	if !info.IsDir {
		return t, fmt.Errorf("%s is no directory: --dir names one on the disk that is to be measured", o.Dir)
	}
	if t.o.BudgetBytes, err = budget(fs, o); err != nil {
		return t, err
	}
	t.profile, t.env = profile.Read(o.Dir), iobench.Describe(fs, o.Dir)
	t.growth = segment.Growth{FirstBytes: t.profile.Defaults().GrowFirstBytes, MaxBytes: growMax(&t.profile)}
	rnd := rand.NewChaCha8([32]byte{byte(o.Seed)})
	_, _ = rnd.Read(t.payload) // never fails; bytes that no disk compresses
	t.dir, t.lock, err = ownDir(fs, o.Dir)
	return t, err
}

// budget is the room that is taken: what was asked for, or what the default and the free room allow.
func budget(fs disk.FS, o Options) (int64, error) {
	space, err := fs.Space(o.Dir)
	if err != nil {
		return max(o.BudgetBytes, BudgetMin), nil // nobody knows: a full disk will say so
	}
	want, free := o.BudgetBytes, space.FreeBytes
	if want == 0 {
		want = max(BudgetMin, min(DefaultBudget, free/2/longest*longest))
	}
	if want < BudgetMin {
		return 0, fmt.Errorf("a budget of %s: at least %s are needed", profile.Size(want), profile.Size(BudgetMin))
	}
	if free < want+want/4 {
		return 0, fmt.Errorf("%s has %d MiB free: a budget of %d MiB wants a quarter more than itself", o.Dir, free>>20, want>>20)
	}
	return want, nil
}

func (t *realTarget) close() (err error) {
	if t.dir != "" {
		err = errors.Join(t.closeSpan(), removeOwn(t.fs, t.dir, t.lock))
	}
	if c, ok := t.fs.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

func (t *realTarget) closeSpan() (err error) {
	if t.raw != nil {
		err = t.raw.Close()
	}
	if t.span != nil {
		err = errors.Join(err, t.span.Close(), t.fs.Remove(t.span.Path()))
	}
	t.raw, t.span = nil, nil
	return err
}

func (t *realTarget) describe(r *Result) {
	on, err := filepath.Abs(t.o.Dir)
	if err != nil {
		on = t.o.Dir
	}
	r.On, r.Profile, r.Env, r.Direct, r.SpanBytes, r.BudgetBytes = on, &t.profile, &t.env, t.direct, t.size, t.o.BudgetBytes
}

func (t *realTarget) prepare(ctx context.Context, g Group) error {
	switch g {
	case Device, Cached:
		if t.span == nil {
			return t.layOut(ctx)
		}
		return nil
	}
	return t.closeSpan() // room for the others
}

// layOut writes the file that is read: half of the budget, or what the disk takes in an eighth of the time.
func (t *realTarget) layOut(ctx context.Context) (err error) {
	if t.span, err = t.fs.Open(filepath.Join(t.dir, "span"), disk.CreateNew); err != nil {
		return err
	}
	want := t.o.BudgetBytes / 2 / longest * longest
	began := time.Now()
	for t.size = 0; t.size < want; t.size += longest {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.size >= 2*longest && time.Since(began) > t.o.Time/8 {
			break
		}
		t.stamp()
		if _, err := t.span.WriteV([][]byte{t.payload}, t.size); err != nil {
			return err
		}
		if err := t.span.Sync(); err != nil { // so that it is known how fast that goes
			return err
		}
	}
	t.saw(t.size, time.Since(began))
	t.direct = "yes"
	if err := rawdisk.Probe(t.span.Path()); err != nil {
		t.direct = fmt.Sprintf("no: %v", err)
		return nil
	}
	t.raw, err = rawdisk.Open(t.span.Path())
	return err
}

// stamp makes the next bytes differ from the last.
func (t *realTarget) stamp() {
	t.made++
	for at := 0; at < len(t.payload); at += rawdisk.AlignBytes {
		binary.LittleEndian.PutUint64(t.payload[at:], uint64(t.made)<<32|uint64(at))
	}
}

// saw remembers what the device takes.
func (t *realTarget) saw(bytes int64, took time.Duration) {
	if s := took.Seconds(); s > 0 && bytes >= longest {
		t.rate = max(1e6, float64(bytes)/s)
	}
}

// writable is how much may be written before a sync, so that the sync does not take much longer than d.
func (t *realTarget) writable(d time.Duration) int64 {
	return min(t.o.BudgetBytes/2, max(longest, int64(t.rate*d.Seconds())))
}

func (t *realTarget) measure(ctx context.Context, c *Cell, d time.Duration) error {
	switch c.Group {
	case Device:
		return t.device(ctx, c, d)
	case Cached:
		return t.cached(ctx, c, d)
	case Syncs, Growing:
		return t.growing(ctx, c, d)
	case Cold:
		return t.coldReaders(ctx, c, d)
	default:
		return t.segments(ctx, c, d)
	}
}

// device is one cell past the page cache.
func (t *realTarget) device(ctx context.Context, c *Cell, d time.Duration) error {
	if t.raw == nil {
		return skip("this file system has no access past the page cache")
	}
	slots := t.size / c.SizeBytes
	bufs := make([][]byte, c.Depth)
	for i := range bufs {
		bufs[i] = rawdisk.Buffer(int(c.SizeBytes))
		copy(bufs[i], t.payload)
	}
	first := t.next / c.SizeBytes
	op := func(n int64, rnd *rand.Rand, buf []byte) (pos int64) {
		slot := (first + n) % slots
		if c.Pattern == Random {
			slot = rnd.Int64N(slots)
		}
		if c.Op == Write {
			binary.LittleEndian.PutUint64(buf, uint64(n))
		}
		return slot * c.SizeBytes
	}
	queued := false
	if c.Depth > 1 {
		var err error
		if queued, err = t.queued(ctx, c, d, bufs, op); err != nil {
			return err
		}
	}
	if !queued {
		l := load{depth: c.Depth, time: d, seed: t.o.Seed, do: func(who int, n int64, rnd *rand.Rand) (k int64, err error) {
			pos, done := op(n, rnd, bufs[who]), 0
			if c.Op == Read {
				done, err = t.raw.ReadAt(bufs[who], pos)
			} else {
				done, err = t.raw.WriteAt(bufs[who], pos)
			}
			return int64(done), err
		}}
		if err := l.run(ctx, c); err != nil {
			return err
		}
	}
	if c.Pattern == Sequential {
		t.next = (t.next + c.Bytes + longest - 1) / longest * longest % t.size
	}
	if c.Op == Write && c.Pattern == Sequential && c.SizeBytes == longest && c.Depth > 1 {
		t.saw(c.Bytes, time.Duration(c.Seconds*float64(time.Second)))
	}
	return nil
}

// cached is one cell through the page cache, with one file.
func (t *realTarget) cached(ctx context.Context, c *Cell, d time.Duration) error {
	switch {
	case c.Op == Write && c.Pattern == Random:
		return t.overwrite(ctx, c, d)
	case c.Op == Write:
		c.Files = 1
		return t.growing(ctx, c, d)
	}
	if err := spindlebench.EvictFile(t.span, t.size); err != nil {
		return staysCached(err)
	}
	slots := t.size / c.SizeBytes
	buf := make([]byte, c.SizeBytes)
	advice := disk.Sequential
	l := load{depth: 1, time: d, opsMax: slots, seed: t.o.Seed, do: func(_ int, n int64, rnd *rand.Rand) (int64, error) {
		if c.Pattern == Random {
			n = rnd.Int64N(slots)
		}
		k, err := t.span.ReadAt(buf, n*c.SizeBytes)
		return int64(k), err
	}}
	if c.Pattern == Random {
		advice, l.opsMax = disk.Random, slots/8 // few of them hit what was read before
	}
	if err := t.span.Advise(0, t.size, advice); err != nil && !errors.Is(err, disk.ErrUnsupported) {
		return err
	}
	return l.run(ctx, c)
}

// staysCached makes a reason to leave a cell out of the error that nothing can be measured cold; others stay what they are.
func staysCached(err error) error {
	if errors.Is(err, spindlebench.ErrStaysCached) || errors.Is(err, disk.ErrUnsupported) {
		return skip("what is written here stays in memory, so that nothing can be measured cold")
	}
	return err
}

// overwrite writes at random into the file that is there, and syncs each time: no block is new, so no journal's commit is due.
func (t *realTarget) overwrite(ctx context.Context, c *Cell, d time.Duration) error {
	slots := t.size / c.SizeBytes
	var lock sync.Mutex // one writer a file; syncs go side by side
	l := load{depth: c.Depth, time: d, seed: t.o.Seed, do: func(_ int, n int64, rnd *rand.Rand) (int64, error) {
		lock.Lock()
		k, err := t.span.WriteV([][]byte{t.payload[:c.SizeBytes]}, rnd.Int64N(slots)*c.SizeBytes)
		lock.Unlock()
		if err == nil {
			err = t.span.Sync()
		}
		return k, err
	}}
	return l.run(ctx, c)
}
