package commitlog

import (
	"io"
	"strings"
	"testing"

	"platter/io/backend"
	"platter/io/crashdisk"
	"platter/io/memdisk"
)

// The crash simulation over each real backend of the build: its files are real ones, and what a power cut leaves of them
// is drawn by the model.
func TestSimOverBackends(t *testing.T) {
	from, to := simSeeds(t)
	if to-from > simBackendSeeds && to == simSeedsDefault {
		to = from + simBackendSeeds
	}
	if testing.Short() {
		to = min(to, from+2)
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
			t.Logf("%s, seeds %d to %d", reason, from, to-1)
			for seed := from; seed < to; seed++ {
				var disk *crashdisk.FS
				s := newSimOn(seed, plantedNone, func(m *memdisk.FS) crashdisk.Disk {
					if disk, err = crashdisk.New(real, t.TempDir(), m); err != nil {
						t.Fatal(err)
					}
					return disk
				})
				if err := s.run(4, 40, 0, false); err != nil || disk.Err() != nil {
					t.Fatalf("seed %d: %v; %v\n%s", seed, err, disk.Err(), strings.Join(s.trace, "\n"))
				}
				disk.Kill() // closes what is open
			}
		})
	}
}

// simBackendSeeds is how many seeds each backend gets: real files take a thousand times as long.
const simBackendSeeds = 8
