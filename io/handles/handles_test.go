package handles

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"platter/io/disk"
	"platter/io/portable"
)

// counting counts the files that are open.
type counting struct {
	disk.FS
	open, most atomic.Int64
}

type countedFile struct {
	disk.File
	fs *counting
}

func (c *counting) Open(path string, m disk.Mode) (disk.File, error) {
	f, err := c.FS.Open(path, m)
	if err != nil {
		return nil, err
	}
	n := c.open.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return countedFile{f, c}, nil
}

func (f countedFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

func TestNeverMoreOpenThanAllowed(t *testing.T) {
	dir := t.TempDir()
	fs := &counting{FS: portable.New()}
	c := New(fs, 4)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				path := filepath.Join(dir, fmt.Sprint((g*7+i)%16))
				r, err := c.Acquire(path, disk.Create)
				if err != nil {
					t.Error(err)
					return
				}
				if r.File().Path() != path {
					t.Errorf("got %s for %s", r.File().Path(), path)
				}
				if _, err := r.File().Size(); err != nil {
					t.Errorf("a pinned file failed: %v", err)
				}
				if i%17 == 0 {
					c.Forget(path)
				}
				r.Release()
			}
		})
	}
	wg.Wait()
	if most := fs.most.Load(); most > 4 {
		t.Errorf("%d files were open at once", most)
	}
	c.Close()
	if n := fs.open.Load(); n != 0 {
		t.Errorf("%d files left open", n)
	}
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	dir := t.TempDir()
	fs := &counting{FS: portable.New()}
	c := New(fs, 2)
	use := func(name string) disk.File {
		t.Helper()
		r, err := c.Acquire(filepath.Join(dir, name), disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		return r.File()
	}
	a, b := use("a"), use("b")
	if use("a") != a {
		t.Error("a was opened twice")
	}
	use("c")
	if use("a") != a {
		t.Error("a had to go although b was older")
	}
	if use("b") == b {
		t.Error("b was not closed")
	}
	c.Close()
}

func TestWhenAllArePinned(t *testing.T) {
	dir := t.TempDir()
	c := New(portable.New(), 1)
	defer c.Close()
	pinned, err := c.Acquire(filepath.Join(dir, "a"), disk.Create)
	if err != nil {
		t.Fatal(err)
	}
	c.wait = 10 * time.Millisecond
	if _, err := c.Acquire(filepath.Join(dir, "b"), disk.Create); !errors.Is(err, ErrTooManyOpen) {
		t.Errorf("beyond the limit: %v", err)
	}
	c.wait = time.Minute
	got := make(chan error, 3)
	for _, name := range []string{"b", "c", "d"} {
		go func() {
			r, err := c.Acquire(filepath.Join(dir, name), disk.Create)
			if err == nil {
				r.Release()
			}
			got <- err
		}()
	}
	pinned.Release()
	for range 3 {
		if err := <-got; err != nil {
			t.Errorf("one that waited: %v", err)
		}
	}
}

func TestAFailedOpenCostsNoPlace(t *testing.T) {
	c := New(portable.New(), 1)
	defer c.Close()
	dir := t.TempDir()
	for range 3 {
		if _, err := c.Acquire(filepath.Join(dir, "none"), disk.ReadOnly); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	r, err := c.Acquire(filepath.Join(dir, "f"), disk.Create)
	if err != nil {
		t.Fatal(err)
	}
	r.Release()
	defer func() {
		if recover() == nil {
			t.Error("a second Release went unnoticed")
		}
	}()
	r.Release()
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	c := New(portable.New(), 4)
	defer c.Close()
	path := filepath.Join(dir, "f")
	if _, err := c.Acquire(path, disk.ReadOnly); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("read a missing file: %v", err)
	}
	w, err := c.Acquire(path, disk.CreateNew)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Acquire(path, disk.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	if r.File() != w.File() {
		t.Error("a reader did not share the writer's file")
	}
	if _, err := c.Acquire(path, disk.CreateNew); !errors.Is(err, fs.ErrExist) {
		t.Errorf("CreateNew of an open file: %v", err)
	}
	c.Forget(path)
	if _, err := w.File().WriteV([][]byte{[]byte("x")}, 0); err != nil {
		t.Errorf("a forgotten file must work until its release: %v", err)
	}
	file := w.File()
	w.Release()
	r.Release()
	if _, err := file.Size(); !errors.Is(err, disk.ErrClosed) {
		t.Errorf("a forgotten file stayed open: %v", err)
	}
}
