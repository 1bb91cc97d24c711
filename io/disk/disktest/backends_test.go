package disktest_test

import (
	"testing"

	"platter/io/backend"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/disk/disktest"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

// TestBackends runs the contract over every backend there is; one that cannot run here is skipped by name.
func TestBackends(t *testing.T) {
	for _, name := range backend.Names {
		t.Run(name, func(t *testing.T) {
			if _, reason, err := backend.Select(name); err != nil {
				t.Skipf("%s cannot run: %v", name, err)
			} else {
				t.Log(reason)
			}
			disktest.Run(t, func(t *testing.T) (disk.FS, string) {
				fs, _, err := backend.Select(name)
				if err != nil {
					t.Fatal(err)
				}
				return fs, t.TempDir()
			})
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
