package spindle

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"platter/io/disk"
)

// cuts notes the sizes that files are cut to.
type cutsFS struct {
	disk.FS
	mu    sync.Mutex
	sizes []int64
	each  func()
}

type cutsFile struct {
	disk.File
	fs *cutsFS
}

func (c *cutsFS) Open(path string, m disk.Mode) (disk.File, error) {
	f, err := c.FS.Open(path, m)
	if err != nil {
		return nil, err
	}
	return &cutsFile{f, c}, nil
}

func (f *cutsFile) Truncate(size int64) error {
	f.fs.mu.Lock()
	f.fs.sizes = append(f.fs.sizes, size)
	if f.fs.each != nil {
		f.fs.each()
	}
	f.fs.mu.Unlock()
	return f.File.Truncate(size)
}

func TestDiscard(t *testing.T) {
	s, c, dir := newBench(t, func(p *Params) { p.CutBytes, p.CutPause = 3*mib, time.Millisecond })
	cuts := &cutsFS{FS: c}
	s.FS = cuts
	large, small := filepath.Join(dir, "1.log.deleted"), filepath.Join(dir, "2.log.deleted")
	write(t, c, large, 10*mib)
	write(t, c, small, 3*mib)
	never := make(chan struct{})
	for _, path := range []string{large, small} {
		if err := s.Discard(path, never); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Stat(path); !disk.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if want := []int64{7 * mib, 4 * mib, mib}; !slices.Equal(cuts.sizes, want) {
		t.Errorf("cut to %v, want %v", cuts.sizes, want)
	}
	if err := s.Discard(large, never); !disk.IsNotExist(err) {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestDiscardStops(t *testing.T) {
	s, c, dir := newBench(t, func(p *Params) { p.CutBytes, p.CutPause = mib, time.Millisecond })
	stop := make(chan struct{})
	cuts := &cutsFS{FS: c}
	cuts.each = func() {
		if len(cuts.sizes) == 4 {
			close(stop)
		}
	}
	s.FS = cuts
	path := filepath.Join(dir, "1.log.deleted")
	write(t, c, path, 100*mib)
	if err := s.Discard(path, stop); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	info, err := c.Stat(path)
	if err != nil || info.SizeBytes >= 100*mib || info.SizeBytes < mib {
		t.Errorf("%+v, %v", info, err)
	}
}

// Who still reads a retired file gets all of it.
func TestDiscardWaitsForReaders(t *testing.T) {
	s, c, dir := newBench(t, func(p *Params) { p.CutBytes, p.CutPause = mib, time.Millisecond })
	live, gone := filepath.Join(dir, "1.log"), filepath.Join(dir, "1.log.deleted")
	write(t, c, live, 5*mib)
	f, err := s.Open(live, disk.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(live, gone); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Discard(gone, make(chan struct{})) }()
	for pos := int64(0); pos < 5*mib; pos += mib {
		time.Sleep(time.Millisecond)
		if n, err := f.ReadAt(make([]byte, mib), pos); n != mib || err != nil {
			t.Fatalf("at %d: %d, %v", pos, n, err)
		}
	}
	f.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the file is not removed though nobody reads it any more")
	}
	if _, err := c.Stat(gone); !disk.IsNotExist(err) {
		t.Error("it is still there")
	}
}

// A file is the same one after its directory was renamed.
func TestDirectoryMoves(t *testing.T) {
	s, c, dir := newBench(t, nil)
	from, to := filepath.Join(dir, "a-0"), filepath.Join(dir, "a-0.x-delete")
	if err := c.MkdirAll(from); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(from, "1.log")
	write(t, c, path, 5*mib)
	f, err := s.Open(path, disk.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	moved := s.files[filepath.Join(to, "1.log")]
	count := len(s.files)
	s.mu.Unlock()
	if moved == nil || moved.opens != 1 || count != 1 {
		t.Errorf("the open file is not known by its new name")
	}
	f.Close()
	if len(s.files) != 0 {
		t.Error("a closed file is remembered")
	}
}
