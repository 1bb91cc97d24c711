//go:build linux && !portable && !nouring

package uring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/disk/disktest"
	"platter/io/psync"
)

// open makes the backend for as long as the test runs; where the kernel has none the test is skipped.
func open(t testing.TB, o Options) *FS {
	t.Helper()
	fs, err := New(o)
	if err != nil {
		t.Skipf("uring cannot run: %v", err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}

func create(t testing.TB, fs disk.FS, path string, content []byte) disk.File {
	t.Helper()
	f, err := fs.Open(path, disk.Create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteV([][]byte{content}, 0); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestContract(t *testing.T) {
	disktest.Run(t, func(t *testing.T) (disk.FS, string) { return open(t, Options{}), t.TempDir() })
}

// TestContractWithoutRing: closed, or without a ring to be had, it works by plain system calls.
func TestContractWithoutRing(t *testing.T) {
	disktest.Run(t, func(t *testing.T) (disk.FS, string) {
		fs := open(t, Options{})
		fs.Close()
		return fs, t.TempDir()
	})
}

// TestNoRingToBeHad: a device that could not have a ring is served without one, and counted.
func TestNoRingToBeHad(t *testing.T) {
	fs := open(t, Options{})
	f := create(t, fs, filepath.Join(t.TempDir(), "f"), []byte("0123456789"))
	d := fs.deviceOf(f)
	d.mu.Lock()
	q := d.queue
	d.queue, d.failed = nil, time.Now().Add(time.Hour)
	d.mu.Unlock()
	q.close()
	reads := []disk.Read{{File: f, Buf: make([]byte, 3)}, {File: f, Buf: make([]byte, 3), Pos: 8}}
	fs.ReadBatch(reads, true)
	if reads[0].N != 3 || reads[0].Err != nil || reads[1].N != 2 || reads[1].Err != io.EOF {
		t.Errorf("%+v", reads)
	}
	if n, err := f.WriteV([][]byte{[]byte("ab")}, 0); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := fs.Sync([]disk.File{f, f}); err != nil {
		t.Error(err)
	}
	if fs.Stats().Plain == 0 {
		t.Error("nothing was counted as done without a ring")
	}
}

// TestWhatGoesThroughTheRing: sets do, by what was chosen; single operations do not.
func TestWhatGoesThroughTheRing(t *testing.T) {
	for _, c := range []struct {
		ops                     Ops
		write, cold, warm, sync uint64
	}{
		{All, 1, 4, 4, 4},
		{0, 0, 0, 0, 0},
		{ColdReads | Syncs, 0, 4, 0, 4},
		{WarmReads, 0, 0, 4, 0},
	} {
		fs := open(t, Options{Choose: func(disk.Caps) Ops { return c.ops }})
		dir := t.TempDir()
		var files []disk.File
		for i := range 4 {
			files = append(files, create(t, fs, filepath.Join(dir, fmt.Sprint(i)), []byte("content")))
		}
		went := func(what string, want uint64, do func()) {
			t.Helper()
			was := fs.Stats().Ops
			do()
			if got := fs.Stats().Ops - was; got != want {
				t.Errorf("ops %b: %s: %d operations through the ring, want %d", c.ops, what, got, want)
			}
		}
		var reads []disk.Read
		for _, f := range files {
			reads = append(reads, disk.Read{File: f, Buf: make([]byte, 7)})
		}
		went("write", c.write, func() { files[0].WriteV([][]byte{[]byte("a"), []byte("b")}, 0) })
		went("cold reads", c.cold, func() { fs.ReadBatch(reads, true) })
		went("warm reads", c.warm, func() { fs.ReadBatch(reads, false) })
		went("sync of a set", c.sync, func() { fs.Sync(files) })
		went("one read", 0, func() { fs.ReadBatch(reads[:1], true) })
		went("one sync", 0, func() { fs.Sync(files[:1]); files[0].Sync() })
		_, wrapped := files[0].(*file)
		if wrapped != (c.ops&Writes != 0) {
			t.Errorf("ops %b: the file is wrapped: %v", c.ops, wrapped)
		}
		if got := fs.Caps(dir).BatchRead; got != (c.ops&ColdReads != 0) {
			t.Errorf("ops %b: BatchRead is %v", c.ops, got)
		}
	}
}

// TestSeveralDevices: a set over two file systems is split, and each part has its own ring.
func TestSeveralDevices(t *testing.T) {
	fs := open(t, Options{})
	dirs := []string{t.TempDir(), t.TempDir()}
	if err := unix.Mount("platter-uring", dirs[1], "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("SKIPPED two file systems: no tmpfs (%v): needs root", err)
	}
	t.Cleanup(func() { unix.Unmount(dirs[1], unix.MNT_DETACH) })
	foreign := create(t, psync.New(), filepath.Join(dirs[0], "foreign"), []byte("foreign"))
	var files []disk.File
	var reads []disk.Read
	for i := range 10 {
		f := create(t, fs, filepath.Join(dirs[i%2], fmt.Sprint(i)), []byte(fmt.Sprint("content ", i)))
		files = append(files, f)
		reads = append(reads, disk.Read{File: f, Buf: make([]byte, 9)})
	}
	reads = append(reads, disk.Read{File: stranger{foreign}, Buf: make([]byte, 7)})
	fs.ReadBatch(reads, true)
	for i, r := range reads[:10] {
		if want := fmt.Sprint("content ", i); string(r.Buf) != want || r.Err != nil {
			t.Errorf("read %d: %q, %v", i, r.Buf, r.Err)
		}
	}
	if r := reads[10]; string(r.Buf) != "foreign" || r.Err != nil {
		t.Errorf("a file of another backend: %q, %v", r.Buf, r.Err)
	}
	if err := fs.Sync(files); err != nil {
		t.Error(err)
	}
	files[3].Close()
	files[6].Close()
	err := fs.Sync(append(files, stranger{foreign}))
	if de := (*disk.Error)(nil); !errors.As(err, &de) || !errors.Is(err, disk.ErrClosed) || de.Path != files[3].Path() {
		t.Errorf("%v; want that of %s", err, files[3].Path())
	}
	if got := fs.Stats().Rings; got != 2 {
		t.Errorf("%d rings for two devices", got)
	}
}

// stranger is a file that this package knows nothing of.
type stranger struct{ disk.File }

func TestOperationsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIPPED allocations of an operation: the race detector's pools forget at random")
	}
	fs := open(t, Options{})
	dir := t.TempDir()
	var files []disk.File
	var reads []disk.Read
	for i := range 16 {
		f := create(t, fs, filepath.Join(dir, fmt.Sprint(i)), bytes.Repeat([]byte("x"), 8192))
		files = append(files, f)
		for range 4 {
			reads = append(reads, disk.Read{File: f, Buf: make([]byte, 4096), Pos: 1024})
		}
	}
	bufs := [][]byte{make([]byte, 100), make([]byte, 1000)}
	for what, do := range map[string]func(){
		"batch of 64 reads": func() { fs.ReadBatch(reads, true) },
		"write":             func() { files[0].WriteV(bufs, 0) },
		"sync of 16 files":  func() { fs.Sync(files) },
	} {
		do()
		if n := testing.AllocsPerRun(50, do); n > 0 {
			t.Errorf("%v allocations a %s", n, what)
		}
	}
}

// TestForgottenBackend: rings of a backend that nobody holds any more are given back.
func TestForgottenBackend(t *testing.T) {
	dir := t.TempDir()
	q := func() *queue {
		fs, err := New(Options{})
		if err != nil {
			t.Skipf("uring cannot run: %v", err)
		}
		f, err := fs.Open(filepath.Join(dir, "f"), disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteV([][]byte{[]byte("x")}, 0); err != nil {
			t.Fatal(err)
		}
		return fs.device(f.(*file).File).queue
	}()
	if q == nil {
		t.Skip("SKIPPED collection of a ring: none was to be had")
	}
	eventually(t, "the ring is collected", func() bool {
		runtime.GC()
		select {
		case <-q.ended:
			return true
		default:
			return false
		}
	})
}

// TestNops: what bench io measures.
func TestNops(t *testing.T) {
	fs := open(t, Options{})
	f := create(t, fs, filepath.Join(t.TempDir(), "f"), []byte("x"))
	if err := fs.Nops(f, 1000, 3); err != nil {
		t.Error(err)
	}
	if err := BareNops(1000, 3); err != nil {
		t.Error(err)
	}
	fs.Close()
	if err := fs.Nops(f, 10, 1); !errors.Is(err, disk.ErrUnsupported) {
		t.Errorf("without a ring: %v", err)
	}
	if _, err := os.Stat(f.Path()); err != nil {
		t.Error(err)
	}
}
