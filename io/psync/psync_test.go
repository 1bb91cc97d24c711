//go:build linux && !portable

package psync

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/gate"
)

func create(t testing.TB, fs *FS, path string) disk.File {
	t.Helper()
	f, err := fs.Open(path, disk.CreateNew)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestVectorsAllocateNothing(t *testing.T) {
	f := create(t, New(), filepath.Join(t.TempDir(), "f"))
	for _, count := range []int{1, 8, 64, 2000} {
		bufs := make([][]byte, count)
		for i := range bufs {
			bufs[i] = []byte("0123456789")
		}
		f.WriteV(bufs, 0)
		if n := testing.AllocsPerRun(20, func() { f.WriteV(bufs, 0) }); n > 0 {
			t.Errorf("%v allocations for %d buffers", n, count)
		}
	}
	p := make([]byte, 1000)
	if n := testing.AllocsPerRun(20, func() { f.ReadAt(p, 0) }); n > 0 {
		t.Errorf("%v allocations a read", n)
	}
}

func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func TestPreallocateTakesAndReleaseTailGivesBack(t *testing.T) {
	fs := New()
	dir := t.TempDir()
	if !fs.Caps(dir).Preallocate {
		t.Skipf("%s cannot preallocate", fs.Caps(dir).FileSystem)
	}
	path := filepath.Join(dir, "f")
	f := create(t, fs, path)
	if _, err := f.WriteV([][]byte{make([]byte, 4096)}, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Preallocate(0, 8<<20); err != nil {
		t.Fatal(err)
	}
	if n := blocks(t, path); n < 8<<20 {
		t.Errorf("%d bytes on disk after Preallocate", n)
	}
	if err := f.ReleaseTail(); err != nil {
		t.Fatal(err)
	}
	if n := blocks(t, path); n > 1<<20 {
		t.Errorf("%d bytes on disk after ReleaseTail", n)
	}
}

// TestLargeRangesStayInTheKernel sends over a connection whose Write would be noticed.
func TestLargeRangesStayInTheKernel(t *testing.T) {
	f := create(t, New(), filepath.Join(t.TempDir(), "f"))
	data := bytes.Repeat([]byte("platter!"), 1<<18)
	if _, err := f.WriteV([][]byte{data}, 0); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		n      int64
		writes bool
	}{{disk.SendCopyBytesMax, true}, {disk.SendCopyBytesMax + 1, false}, {int64(len(data)), false}} {
		peer, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ours, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan []byte)
		go func() {
			p, _ := io.ReadAll(peer)
			got <- p
		}()
		w := &watched{TCPConn: ours.(*net.TCPConn)}
		if _, err := f.SendTo(w, 0, c.n); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if !bytes.Equal(<-got, data[:c.n]) {
			t.Errorf("%d bytes arrived wrong", c.n)
		}
		peer.Close()
		if w.wrote != c.writes {
			t.Errorf("%d bytes: written through the connection: %v", c.n, w.wrote)
		}
	}
}

type watched struct {
	*net.TCPConn
	wrote bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.wrote = true
	return w.TCPConn.Write(p)
}

// TestAHungDeviceHoldsUpItselfOnly fills the gate of one directory; a file in another goes on.
func TestAHungDeviceHoldsUpItselfOnly(t *testing.T) {
	fs, dir := New(), t.TempDir()
	own := gate.New("hung", 8)
	gate.Process.Add(dir, own)
	f := create(t, fs, filepath.Join(dir, "f"))
	for own.TryEnter(gate.Write) {
	}
	done := make(chan error)
	go func() { done <- f.Sync() }()
	other := create(t, fs, filepath.Join(t.TempDir(), "other"))
	if err := other.Sync(); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(60 * time.Second); own.Stats().Waiting == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("a call got into a full gate")
		}
	}
	own.Leave(gate.Write)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestErrorsSayWhatAndWhere(t *testing.T) {
	_, err := New().Open("/no/such/file", disk.ReadWrite)
	if got, want := err.Error(), "open /no/such/file: no such file or directory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err = disk.Fail("write", "/d/f", 4096, syscall.ENOSPC)
	if !errors.Is(err, disk.ErrFull) || !errors.Is(err, syscall.ENOSPC) || err.Error() != "write /d/f at 4096: no space left on device" {
		t.Errorf("%v", err)
	}
}

func BenchmarkWriteV(b *testing.B) {
	f := create(b, New(), filepath.Join(b.TempDir(), "f"))
	bufs := make([][]byte, 64)
	for i := range bufs {
		bufs[i] = make([]byte, 1024)
	}
	b.SetBytes(64 * 1024)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f.WriteV(bufs, int64(i%1000)*64*1024)
	}
}
