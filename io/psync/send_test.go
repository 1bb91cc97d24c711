//go:build linux && !portable

package psync

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"platter/io/disk"
	"platter/io/disk/disktest"
	"platter/io/gate"
)

var kernelMethods = []disk.SendMethod{disk.SendFile, disk.SendSplice, disk.SendMapped}

// sender is a backend that sends everything, small ranges too, by m.
func sender(t testing.TB, m disk.SendMethod) *FS {
	t.Helper()
	fs := New()
	if err := disk.SetSend(fs, disk.SendOptions{Method: m}); err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestContractByEachMethod(t *testing.T) {
	for _, m := range disk.SendMethods {
		t.Run(string(m), func(t *testing.T) {
			disktest.Run(t, func(t *testing.T) (disk.FS, string) { return sender(t, m), t.TempDir() })
		})
	}
}

func TestUnknownMethod(t *testing.T) {
	for _, o := range []disk.SendOptions{{Method: "pigeon"}, {Method: disk.SendFile, CopyBytesMax: -1}} {
		if err := disk.SetSend(New(), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// connect is both ends of a TCP connection.
func connect(t testing.TB) (peer, ours *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	o, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); o.Close() })
	return p.(*net.TCPConn), o.(*net.TCPConn)
}

func threads(t testing.TB) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

// eventually waits until ok says so.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// TestStalledPeersHoldNoThread has more peers that do not read than there are pipes, and places in the
// device's gate: other work on the same device goes on, and no threads come up. Later all arrives.
func TestStalledPeersHoldNoThread(t *testing.T) {
	const peers, size = 2 * gate.PlacesDefault, 2 << 20
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for _, m := range kernelMethods {
		t.Run(string(m), func(t *testing.T) {
			fs := sender(t, m)
			f := create(t, fs, filepath.Join(t.TempDir(), "f"))
			if _, err := f.WriteV([][]byte{data}, 0); err != nil {
				t.Fatal(err)
			}
			before := threads(t)
			ends := make([]*net.TCPConn, peers)
			var wg sync.WaitGroup
			for i := range ends {
				peer, ours := connect(t)
				ends[i] = peer
				if err := errors.Join(peer.SetReadBuffer(256<<10), ours.SetWriteBuffer(256<<10)); err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					if n, err := f.SendTo(ours, 0, size); n != size || err != nil {
						t.Errorf("peer %d: sent %d: %v", i, n, err)
					}
					ours.Close()
				})
			}
			// A peer has got something once its send is under way.
			for _, c := range ends {
				if _, err := io.ReadFull(c, make([]byte, 16)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := f.ReadAt(make([]byte, 16), 0); err != nil {
				t.Error(err)
			}
			if n := threads(t); n > before+peers/4 {
				t.Errorf("%d threads while %d peers do not read, %d before", n, peers, before)
			}
			for i, c := range ends {
				if n, err := io.Copy(io.Discard, c); n != size-16 || err != nil {
					t.Errorf("peer %d: %d more bytes came: %v", i, n, err)
				}
			}
			wg.Wait()
			pipes.Lock()
			defer pipes.Unlock()
			if pipes.count > disk.SendPipesMax || len(pipes.idle) != pipes.count {
				t.Errorf("%d pipes, of which %d rest", pipes.count, len(pipes.idle))
			}
		})
	}
}

// TestAFailedSendLeavesNoPipe: what is still in its pipe must not reach another peer.
func TestAFailedSendLeavesNoPipe(t *testing.T) {
	f := create(t, sender(t, disk.SendSplice), filepath.Join(t.TempDir(), "f"))
	const size = 64 << 20
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, ours := connect(t)
		if err := ours.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.SendTo(ours, 0, size); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v; want the deadline", err)
		}
	}
	pipes.Lock()
	defer pipes.Unlock()
	for _, p := range pipes.idle {
		if p.held != 0 {
			t.Errorf("a pipe rests with %d bytes in it", p.held)
		}
	}
}

// TestMappingGrowsWithTheFile sends from a file that grows beyond its mapping while older sends go on.
func TestMappingGrowsWithTheFile(t *testing.T) {
	f := create(t, sender(t, disk.SendMapped), filepath.Join(t.TempDir(), "f"))
	was := mapCount.Load()
	var wg sync.WaitGroup
	for _, end := range []int64{1 << 20, mapBytesMin - 1, mapBytesMin + 1, 5 * mapBytesMin} {
		mark := []byte("the very end")
		if _, err := f.WriteV([][]byte{mark}, end-int64(len(mark))); err != nil {
			t.Fatal(err)
		}
		peer, ours := connect(t)
		wg.Go(func() {
			if _, err := f.SendTo(ours, end-1<<20, 1<<20); err != nil {
				t.Error(err)
			}
			ours.Close()
		})
		got, err := io.ReadAll(peer)
		if err != nil || len(got) != 1<<20 || !bytes.HasSuffix(got, mark) {
			t.Errorf("to %d: %d bytes came: %v", end, len(got), err)
		}
	}
	wg.Wait()
	if n := mapCount.Load() - was; n != 1 {
		t.Errorf("%d mappings of one file", n)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if n := mapCount.Load() - was; n != 0 {
		t.Errorf("%d mappings left behind", n)
	}
}

// TestCutWhileItIsSent cuts the file below a send whose peer is slow: the send ends with what there was,
// or an error, and never brings the process down.
func TestCutWhileItIsSent(t *testing.T) {
	const size, cut = 32 << 20, 1<<20 + 100
	for _, m := range kernelMethods {
		t.Run(string(m), func(t *testing.T) {
			f := create(t, sender(t, m), filepath.Join(t.TempDir(), "f"))
			if _, err := f.WriteV([][]byte{bytes.Repeat([]byte{7}, size)}, 0); err != nil {
				t.Fatal(err)
			}
			peer, ours := connect(t)
			done := make(chan error, 1)
			go func() {
				_, err := f.SendTo(ours, 0, size)
				ours.Close()
				done <- err
			}()
			if _, err := io.ReadFull(peer, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(cut); err != nil {
				t.Fatal(err)
			}
			if n, _ := io.Copy(io.Discard, peer); n >= size-1000 {
				t.Errorf("%d bytes of a file that was cut", n)
			}
			if err := <-done; !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v; want the file's end", err)
			}
		})
	}
}

// TestMappedPagesCanBeDropped: pages that are mapped stay in the cache, unless the mapping lets them go.
func TestMappedPagesCanBeDropped(t *testing.T) {
	const size = 4 << 20
	fs := sender(t, disk.SendMapped)
	f := create(t, fs, filepath.Join(t.TempDir(), "f"))
	if _, err := f.WriteV([][]byte{make([]byte, size)}, 0); err != nil {
		t.Fatal(err)
	}
	peer, ours := connect(t)
	go func() {
		_, _ = f.SendTo(ours, 0, size)
		ours.Close()
	}()
	if n, err := io.Copy(io.Discard, peer); n != size || err != nil {
		t.Fatal(n, err)
	}
	if fs.Caps(f.Path()).FileSystem == "tmpfs" {
		t.Skip("tmpfs drops nothing")
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Resident(0, size); errors.Is(err, disk.ErrUnsupported) {
		t.Skip("this kernel does not tell what is resident")
	}
	eventually(t, "the pages are gone", func() bool {
		if err := f.Advise(0, size, disk.DontNeed); err != nil {
			t.Fatal(err)
		}
		n, err := f.Resident(0, size)
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}
