package disktest_test

import (
	"io"
	"testing"

	"platter/io/backend"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/disk/disktest"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

// selected is a backend of this build, until the test ends; one that cannot run here is skipped by name.
func selected(t *testing.T, name string) disk.FS {
	t.Helper()
	fs, reason, err := backend.Select(name)
	if err != nil {
		t.Skipf("SKIPPED backend %s: %v", name, err)
	}
	t.Log(reason)
	if c, ok := fs.(io.Closer); ok {
		t.Cleanup(func() { c.Close() })
	}
	return fs
}

// TestBackends runs the contract over every backend there is; one that cannot run here is skipped by name.
func TestBackends(t *testing.T) {
	for _, name := range backend.Names {
		t.Run(name, func(t *testing.T) {
			selected(t, name)
			disktest.Run(t, func(t *testing.T) (disk.FS, string) { return selected(t, name), t.TempDir() })
		})
	}
	t.Run("faultdisk without faults", func(t *testing.T) {
		disktest.Run(t, func(t *testing.T) (disk.FS, string) {
			inner := memdisk.New(memdisk.Options{})
			if err := inner.MkdirAll("/d"); err != nil {
				t.Fatal(err)
			}
			return faultdisk.New(inner, 1, clock.Real{}), "/d"
		})
	})
	t.Run("memdisk", func(t *testing.T) {
		disktest.Run(t, func(t *testing.T) (disk.FS, string) {
			fs := memdisk.New(memdisk.Options{})
			if err := fs.MkdirAll("/data/dir"); err != nil {
				t.Fatal(err)
			}
			return fs, "/data/dir"
		})
	})
}
