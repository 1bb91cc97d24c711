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
