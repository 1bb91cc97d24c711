package spindle

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"platter/io/backend"
	"platter/io/clock"
	"platter/io/disk"
)

// On the files of this machine, over real sockets: what cold readers get is what was written, whichever way it takes.
func TestRealFiles(t *testing.T) {
	for _, buffers := range []bool{false, true} {
		t.Run(fmt.Sprintf("buffers %v", buffers), func(t *testing.T) { realFiles(t, buffers) })
	}
}

func realFiles(t *testing.T, buffers bool) {
	fs, _, err := backend.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if !fs.Caps(dir).Resident {
		t.Skip("nobody tells here what is in the page cache")
	}
	p := Rotational(32 * mib)
	p.Buffers, p.HotBytes = buffers, 0
	s := New(fs, clock.Real{}, []Dir{{Path: dir, Device: "disk", Params: p}})
	defer s.Close()
	const readers, size = 4, 9*mib + 4321
	cold := 0
	var wg sync.WaitGroup
	for i := range readers {
		path := filepath.Join(dir, fmt.Sprintf("%020d.log", i))
		want := write(t, s, path, size)
		f, err := s.Open(path, disk.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := f.Advise(0, size, disk.DontNeed); err != nil {
			t.Fatal(err)
		}
		if have, err := f.Resident(0, size); err == nil && have < size/2 {
			cold++
		}
		wg.Go(func() {
			if got := throughSocket(t, ForReaders(f), size); !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes arrived that differ from the %d written", path, len(got), len(want))
			}
		})
	}
	wg.Wait()
	if st := s.Stats()[0]; cold > 0 && st.Runs == 0 {
		t.Errorf("%d files were cold, and the lane has read nothing: %+v", cold, st)
	}
}

// throughSocket sends a file in fetches of a MiB and small ones, and returns what arrives.
func throughSocket(t *testing.T, f disk.File, size int64) []byte {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return nil
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for pos, i := int64(0), 0; pos < size; i++ {
			n := min(size-pos, []int64{mib, 50_000, 3 * mib}[i%3])
			if sent, err := f.SendTo(c, pos, n); err != nil || sent != n {
				t.Errorf("at %d: sent %d of %d: %v", pos, sent, n, err)
				return
			}
			pos += n
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Error(err)
		return nil
	}
	defer c.Close()
	got, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return got
}

// What a warm reader pays for the lane: one look at what was written lately, or one system call a range.
func BenchmarkWarm(b *testing.B) {
	fs, _, err := backend.Select("auto")
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	buf := make([]byte, mib)
	for _, c := range []struct {
		name string
		hot  int64
		care bool
	}{{"bare", 0, false}, {"in the cache", 0, true}, {"just written", 64 * mib, true}} {
		p := Rotational(64 * mib)
		p.HotBytes = c.hot
		p.Cold = c.care
		s := New(fs, clock.Real{}, []Dir{{Path: dir, Device: "disk", Params: p}})
		f, err := s.Open(filepath.Join(dir, c.name+".log"), disk.Create)
		if err != nil {
			b.Fatal(err)
		}
		for pos := int64(0); pos < 4*mib; pos += mib {
			if _, err := f.WriteV([][]byte{buf}, pos); err != nil {
				b.Fatal(err)
			}
		}
		for _, n := range []int{4 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				r := ForReaders(f)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := r.ReadAt(buf[:n], int64(i*n)%(3*mib)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		f.Close()
		s.Close()
	}
}
