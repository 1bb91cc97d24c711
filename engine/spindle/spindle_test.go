package spindle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"platter/io/clock"
	"platter/io/disk"
	"platter/io/memdisk"
)

const mib = 1 << 20

// cachedFS is a disk in memory with a page cache that the test can look into and empty.
type cachedFS struct {
	disk.FS
	mu       sync.Mutex
	resident map[string]map[int64]bool // by path and page
	fromDisk map[string]int64          // bytes that were not in the cache when they were read
	short    map[string]int64          // of those, what was read without advice
	failing  bool                      // every read fails
}

const page = 4096

func newCachedFS() *cachedFS {
	return &cachedFS{FS: memdisk.New(memdisk.Options{}), resident: map[string]map[int64]bool{}, fromDisk: map[string]int64{}, short: map[string]int64{}}
}

func (c *cachedFS) Caps(path string) disk.Caps {
	caps := c.FS.Caps(path)
	caps.Resident, caps.Advise = true, true
	return caps
}

func (c *cachedFS) Open(path string, m disk.Mode) (disk.File, error) {
	f, err := c.FS.Open(path, m)
	if err != nil {
		return nil, err
	}
	return &cachedFile{f, c}, nil
}

// evict empties the page cache.
func (c *cachedFS) evict() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.resident)
}

// load brings pages in, and counts those that come from the disk.
func (c *cachedFS) load(path string, pos, n int64, advised bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resident[path] == nil {
		c.resident[path] = map[int64]bool{}
	}
	for p := pos / page; p*page < pos+n; p++ {
		if !c.resident[path][p] {
			c.resident[path][p] = true
			c.fromDisk[path] += page
			if !advised {
				c.short[path] += page
			}
		}
	}
}

func (c *cachedFS) residentBytes(path string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.resident[path])) * page
}

type cachedFile struct {
	disk.File
	c *cachedFS
}

func (f *cachedFile) ReadAt(p []byte, pos int64) (int, error) {
	if f.c.failing {
		return 0, disk.Fail("read", f.Path(), pos, errors.New("planted"))
	}
	f.c.load(f.Path(), pos, int64(len(p)), false)
	return f.File.ReadAt(p, pos)
}

func (f *cachedFile) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	return disk.CopyTo(dst, f, pos, n)
}

func (f *cachedFile) Resident(pos, n int64) (have int64, err error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	for p := pos; p < pos+n; p = (p/page + 1) * page {
		if f.c.resident[f.Path()][p/page] {
			have += min((p/page+1)*page, pos+n) - p
		}
	}
	return have, nil
}

func (f *cachedFile) Advise(pos, n int64, a disk.Advice) error {
	switch a {
	case disk.WillNeed:
		f.c.load(f.Path(), pos, n, true)
	case disk.DontNeed:
		f.c.mu.Lock()
		defer f.c.mu.Unlock()
		for p := (pos + page - 1) / page; (p+1)*page <= pos+n; p++ {
			delete(f.c.resident[f.Path()], p)
		}
	}
	return nil
}

func (f *cachedFile) WriteV(bufs [][]byte, pos int64) (int64, error) {
	n, err := f.File.WriteV(bufs, pos)
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.c.resident[f.Path()] == nil {
		f.c.resident[f.Path()] = map[int64]bool{}
	}
	for p := pos / page; p*page < pos+n; p++ {
		f.c.resident[f.Path()][p] = true
	}
	return n, err
}

// bench is a Set over a cachedFS with one data directory.
func newBench(t *testing.T, change func(*Params), other ...clock.Clock) (*Set, *cachedFS, string) {
	t.Helper()
	c := newCachedFS()
	dir := filepath.FromSlash("/data")
	if err := c.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	p := Rotational(64 * mib)
	p.HotBytes = mib
	if change != nil {
		change(&p)
	}
	s := New(c, append(other, clock.Real{})[0], []Dir{{Path: dir, Device: "sda", Params: p}})
	t.Cleanup(s.Close)
	return s, c, dir
}

func write(t *testing.T, fs disk.FS, path string, n int64) []byte {
	t.Helper()
	data := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{byte(len(path)), byte(n)})
	rnd.Read(data)
	f, err := fs.Open(path, disk.Create)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteV([][]byte{data}, 0); err != nil {
		t.Fatal(err)
	}
	return data
}

// sendAll sends a file in ranges of step bytes over a pipe and returns what arrives.
func sendAll(t *testing.T, fs disk.FS, path string, n, step int64) []byte {
	t.Helper()
	f, err := fs.Open(path, disk.ReadOnly)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer f.Close()
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		r := ForReaders(f)
		for pos := int64(0); pos < n; pos += step {
			if sent, err := r.SendTo(server, pos, min(step, n-pos)); err != nil || sent != min(step, n-pos) {
				t.Errorf("%s at %d: sent %d: %v", path, pos, sent, err)
				return
			}
		}
	}()
	got, err := io.ReadAll(client)
	if err != nil {
		t.Error(err)
	}
	return got
}

func TestColdReadersTakeTurns(t *testing.T) {
	t.Run("by the page cache", func(t *testing.T) { coldReaders(t, false) })
	t.Run("by buffers", func(t *testing.T) { coldReaders(t, true) })
}

// TestColdReadersOfAWrongClock: readers that wait for their turn do not wait for what the machine's clock is set to.
func TestColdReadersOfAWrongClock(t *testing.T) {
	k := clock.NewSkewed(clock.Real{}, 0, 1)
	over := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
				k.Jump(-time.Hour)
			}
		}
	})
	coldReaders(t, false, k)
	close(over)
	all.Wait()
}

func coldReaders(t *testing.T, buffers bool, other ...clock.Clock) {
	s, c, dir := newBench(t, func(p *Params) { p.Buffers = buffers }, other...)
	const readers, size = 4, 9*mib + 777
	want := map[string][]byte{}
	for i := range readers {
		path := filepath.Join(dir, fmt.Sprintf("%020d.log", i))
		want[path] = write(t, c, path, size) // not through the set: nothing of it is hot
	}
	c.evict()
	var wg sync.WaitGroup
	for path, data := range want {
		wg.Go(func() {
			if got := sendAll(t, s, path, size, 700_001); !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes arrived that differ", path, len(got))
			}
		})
	}
	wg.Wait()
	st := s.Stats()[0]
	for path := range want {
		if c.fromDisk[path] < size || c.fromDisk[path] > size+20*page { // where two reads meet in a page it counts twice
			t.Errorf("%s: %d bytes were read of %d: each page once", path, c.fromDisk[path], size)
		}
		if c.short[path] > 0 {
			t.Errorf("%s: %d bytes were read past the lane", path, c.short[path])
		}
		if have := c.residentBytes(path); have > 10*mib || buffers && have > 0 {
			t.Errorf("%s: %d bytes stay in the cache behind the reader", path, have)
		}
	}
	for _, x := range s.files {
		held := int64(0)
		for _, k := range x.chunks {
			held += int64(len(k.p))
			if k.refs != 0 {
				t.Errorf("a chunk at %d is still in use", k.pos)
			}
		}
		if !buffers && held > 0 || held > 12*mib {
			t.Errorf("%d bytes are in memory of ours", held)
		}
	}
	if st.RunBytes != readers*size || st.Waiting != 0 || st.Flying != 0 {
		t.Errorf("%+v", st)
	}
}

// ReadBatch of a cold set leaves nothing behind.
func (c *cachedFS) ReadBatch(reads []disk.Read, cold bool) {
	for i := range reads {
		r := &reads[i]
		f := r.File.(*cachedFile)
		if !cold {
			r.N, r.Err = f.ReadAt(r.Buf, r.Pos)
			continue
		}
		r.N, r.Err = f.File.ReadAt(r.Buf, r.Pos)
		c.mu.Lock()
		for p := r.Pos / page; p*page < r.Pos+int64(r.N); p++ {
			if !c.resident[f.Path()][p] {
				c.fromDisk[f.Path()] += page
			}
		}
		c.mu.Unlock()
	}
}

// What was just written is read without any question, and what is in the cache without the lane.
func TestWarmReadersPass(t *testing.T) {
	s, c, dir := newBench(t, nil)
	hot, warm := filepath.Join(dir, "1.log"), filepath.Join(dir, "2.log")
	write(t, c, warm, 5*mib)
	want := write(t, s, hot, 3*mib)
	f, err := s.Open(hot, disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteV([][]byte{want[:mib]}, 3*mib); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	clear(c.resident[hot]) // it would be read from the disk if anybody asked
	c.mu.Unlock()
	p := make([]byte, mib)
	if _, err := ForReaders(f).ReadAt(p, 3*mib); err != nil || !bytes.Equal(p, want[:mib]) {
		t.Errorf("hot: %v", err)
	}
	sendAll(t, s, warm, 5*mib, mib)
	if st := s.Stats()[0]; st.Asks != 0 || st.Runs != 0 {
		t.Errorf("the lane was asked: %+v", st)
	}
}

// Whoever waits for a run that fails gets the error of his own read.
func TestFailingDisk(t *testing.T) {
	s, c, dir := newBench(t, nil)
	path := filepath.Join(dir, "1.log")
	write(t, c, path, 2*mib)
	c.evict()
	f, err := s.Open(path, disk.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.failing = true
	var failed *disk.Error
	if n, err := ForReaders(f).ReadAt(make([]byte, mib), 0); n != 0 || !errors.As(err, &failed) {
		t.Errorf("%d, %v", n, err)
	}
}

// A file is cut, written anew, renamed and removed while it is known to the lane.
func TestFilesChange(t *testing.T) {
	t.Run("by the page cache", func(t *testing.T) { filesChange(t, false) })
	t.Run("by buffers", func(t *testing.T) { filesChange(t, true) })
}

func filesChange(t *testing.T, buffers bool) {
	s, c, dir := newBench(t, func(p *Params) { p.Buffers = buffers })
	path := filepath.Join(dir, "1.log")
	write(t, c, path, 8*mib)
	c.evict()
	sendAll(t, s, path, 3*mib, mib)
	f, err := s.Open(path, disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(mib); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("new"), mib)
	if _, err := f.WriteV([][]byte{want}, mib); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := sendAll(t, s, path, 4*mib, mib); !bytes.Equal(got[mib:], want) {
		t.Error("old bytes are served where new ones stand")
	}
	if err := s.Rename(path, path+".deleted"); err != nil {
		t.Fatal(err)
	}
	want = write(t, s, path, 2*mib)
	c.evict()
	if got := sendAll(t, s, path, 2*mib, mib); !bytes.Equal(got, want) {
		t.Error("a file of an earlier one's name is not its own")
	}
	if err := s.Remove(path); err != nil {
		t.Fatal(err)
	}
	if n := len(s.files); n != 0 {
		t.Errorf("%d files are remembered that are gone", n)
	}
}

// The end of a file that counts as written lately moves on with it, and ends with time.
func TestRecent(t *testing.T) {
	var r recent
	if _, ok := r.start(0, 1000); ok {
		t.Error("nothing was written")
	}
	for at := int64(0); at <= 100; at++ {
		r.wrote(at*10, at, 8)
		pos, ok := r.start(at, 20)
		if !ok || pos > at*10 || pos < at*10-180 || at > 20 && pos > at*10-80 {
			t.Fatalf("at %d: from %d, %v", at, pos, ok)
		}
	}
	r.cut(500)
	if pos, ok := r.start(100, 20); !ok || pos != 500 {
		t.Errorf("after a cut: %d, %v", pos, ok)
	}
	if _, ok := r.start(130, 20); ok {
		t.Error("it is long ago")
	}
}
