package rawdisk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"platter/io/disk"
)

func TestBufferIsAligned(t *testing.T) {
	for _, n := range []int{AlignBytes, 3 * AlignBytes, 1 << 20} {
		b := Buffer(n)
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); len(b) != n || at%AlignBytes != 0 {
			t.Errorf("%d bytes: %d at %#x", n, len(b), at)
		}
	}
}

func TestBytesGoThroughAndBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw")
	if err := os.WriteFile(path, make([]byte, 8*AlignBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Probe(path); errors.Is(err, disk.ErrUnsupported) {
		t.Skipf("SKIPPED: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, got := Buffer(AlignBytes), Buffer(AlignBytes)
	for i := range want {
		want[i] = byte(i * 7)
	}
	if _, err := f.WriteAt(want, 2*AlignBytes); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(got, 2*AlignBytes); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v, the same bytes: %v", err, bytes.Equal(got, want))
	}
}

func TestMissingFile(t *testing.T) {
	err := Probe(filepath.Join(t.TempDir(), "none"))
	if err == nil || !disk.IsNotExist(err) && !errors.Is(err, disk.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// Many operations at once go through and back; one that is beyond the end tells.
func TestQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw")
	const depth = 8
	if err := os.WriteFile(path, make([]byte, depth*AlignBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if errors.Is(err, disk.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	q, err := NewQueue(f, depth)
	if errors.Is(err, disk.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := func(write bool, bufs [][]byte) {
		t.Helper()
		for i := range depth {
			q.Put(i, write, bufs[i], int64(i)*AlignBytes)
		}
		if err := q.Submit(); errors.Is(err, disk.ErrUnsupported) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		for seen := 0; seen < depth; {
			ready, err := q.Wait()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range ready {
				if c.Err != nil || c.N != AlignBytes {
					t.Fatalf("%+v", c)
				}
				seen++
			}
		}
	}
	written, read := make([][]byte, depth), make([][]byte, depth)
	for i := range depth {
		written[i], read[i] = Buffer(AlignBytes), Buffer(AlignBytes)
		for k := range written[i] {
			written[i][k] = byte(i + 1)
		}
	}
	all(true, written)
	all(false, read)
	for i := range depth {
		if !bytes.Equal(written[i], read[i]) {
			t.Errorf("%d: other bytes came back", i)
		}
	}
	q.Put(0, false, read[0], depth*AlignBytes)
	if err := q.Submit(); err != nil {
		t.Fatal(err)
	}
	if ready, err := q.Wait(); err != nil || len(ready) != 1 || ready[0].Err == nil {
		t.Errorf("%+v, %v", ready, err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}
