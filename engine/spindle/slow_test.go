package spindle

import (
	"bytes"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"platter/io/disk"
)

// Slow readers leave nothing behind and get their turn beside others.
func TestSlow(t *testing.T) {
	s, c, dir := newBench(t, nil)
	const size = 5*mib + 100
	slow, fast := filepath.Join(dir, "1.log"), filepath.Join(dir, "2.log")
	want := write(t, c, slow, size)
	other := write(t, c, fast, 2*size)
	c.evict()
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := sendAll(t, s, fast, 2*size, mib); !bytes.Equal(got, other) {
			t.Error("the other reader's bytes differ")
		}
	})
	f, err := s.Open(slow, disk.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := Slow(f)
	got, err := io.ReadAll(io.NewSectionReader(r, 0, size+5))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if n, err := r.ReadAt(make([]byte, 10), size); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	r.Close()
	wg.Wait()
	if have := c.residentBytes(slow); have > page {
		t.Errorf("%d bytes stay in the cache", have)
	}
	if st := s.Stats()[0]; st.BackgroundRuns < 2 || st.Flying != 0 || st.Waiting != 0 {
		t.Errorf("%+v", st)
	}
}

// A file of another FS is just read.
func TestSlowElsewhere(t *testing.T) {
	c := newCachedFS()
	want := write(t, c, "x.log", 1000)
	f, err := c.Open("x.log", disk.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	r := Slow(f)
	p := make([]byte, 1000)
	if _, err := r.ReadAt(p, 0); err != nil || !bytes.Equal(p, want) {
		t.Error(err)
	}
	r.Close()
	if ForReaders(f) != f {
		t.Error("a file that is nobody's changes for readers")
	}
}
