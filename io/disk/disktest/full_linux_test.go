//go:build linux

package disktest_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"platter/io/atomicfile"
	"platter/io/backend"
	"platter/io/disk"
	"platter/io/memdisk"
)

const fullBytes = 1 << 20

// TestFullDisk fills a small disk: a real tmpfs under the host's backends, and the simulated one.
func TestFullDisk(t *testing.T) {
	for _, name := range backend.Names {
		t.Run(name, func(t *testing.T) {
			fs, dir := selected(t, name), t.TempDir()
			mountTmpfs(t, dir, "size=1m")
			fill(t, fs, dir)
		})
	}
	t.Run("memdisk", func(t *testing.T) {
		fs := memdisk.New(memdisk.Options{CapacityBytes: fullBytes})
		if err := fs.MkdirAll("/d"); err != nil {
			t.Fatal(err)
		}
		fill(t, fs, "/d")
	})
}

func fill(t *testing.T, fs disk.FS, dir string) {
	name := fs.Name()
	open := func(name string) disk.File {
		t.Helper()
		f, err := fs.Open(filepath.Join(dir, name), disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	f := open("log")
	piece := bytes.Repeat([]byte("record batch "), 3000)
	var end int64
	for {
		n, err := f.WriteV([][]byte{piece[:1000], piece[1000:]}, end)
		if err == nil {
			end += n
			continue
		}
		if !errors.Is(err, disk.ErrFull) {
			t.Fatalf("a full disk gave %v", err)
		}
		if n >= int64(len(piece)) {
			t.Fatalf("%d of %d bytes and an error", n, len(piece))
		}
		// os.File.WriteAt may report none of the bytes that it wrote.
		if size, _ := f.Size(); size < end+n || name != "portable" && size != end+n {
			t.Fatalf("%d bytes reported beyond %d, size %d", n, end, size)
		}
		break
	}
	if end < fullBytes/2 {
		t.Fatalf("full at %d", end)
	}
	if s, err := fs.Space(dir); err != nil || s.FreeBytes > int64(len(piece)) {
		t.Errorf("%+v, %v", s, err)
	}
	if err := f.Truncate(end); err != nil {
		t.Fatalf("cut back on a full disk: %v", err)
	}
	if err := f.Sync(); err != nil {
		t.Fatalf("sync on a full disk: %v", err)
	}
	if err := atomicfile.Write(fs, filepath.Join(dir, "checkpoint"), bytes.Repeat([]byte("x"), 64<<10)); !errors.Is(err, disk.ErrFull) {
		t.Errorf("a checkpoint on a full disk: %v", err)
	}
	got := make([]byte, len(piece))
	if _, err := f.ReadAt(got, end-int64(len(piece))); err != nil || !bytes.Equal(got, piece) {
		t.Errorf("read on a full disk: %v", err)
	}
	if err := f.Truncate(end / 2); err != nil {
		t.Fatal(err)
	}
	if _, err := open("other").WriteV([][]byte{piece}, 0); err != nil {
		t.Errorf("write once there is room: %v", err)
	}
}
