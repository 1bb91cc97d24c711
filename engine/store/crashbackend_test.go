package store

import (
	"io"
	"testing"

	"platter/io/backend"
	"platter/io/crashdisk"
	"platter/io/memdisk"
)

// TestCrashOverBackends is TestCrash over each real backend of the build: the files are real ones, and what a power
// cut leaves of them is drawn by the model.
func TestCrashOverBackends(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	for _, name := range append([]string{"auto"}, backend.Built()...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			real, reason, err := backend.Select(name)
			if err != nil {
				t.Skipf("%s cannot run: %v", name, err)
			}
			if c, ok := real.(io.Closer); ok {
				defer c.Close()
			}
			t.Logf("%s, seeds 0 to %d", reason, seeds-1)
			for seed := range seeds {
				var disk *crashdisk.FS
				r := newRigOn(t, func(m *memdisk.FS) crashdisk.Disk {
					if disk, err = crashdisk.New(real, t.TempDir(), m); err != nil {
						t.Fatal(err)
					}
					return disk
				})
				if err := crashHistory(r, seed); err != nil || disk.Err() != nil {
					t.Fatalf("seed %d: %v; %v", seed, err, disk.Err())
				}
				disk.Kill() // closes what is open
			}
		})
	}
}
