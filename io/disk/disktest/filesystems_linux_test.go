//go:build linux

package disktest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"platter/io/backend"
	"platter/io/disk"
	"platter/io/disk/disktest"
)

// TestFileSystems runs the contract over every backend on every file system that it is claimed for: ext4 and
// XFS on loop devices of its own, and tmpfs. What cannot run here is skipped by name.
func TestFileSystems(t *testing.T) {
	for _, c := range []struct {
		name  string
		mount func(t *testing.T, dir string)
	}{
		{"ext4", func(t *testing.T, dir string) { mountImage(t, dir, "ext4", "-q", "-F") }},
		{"xfs", func(t *testing.T, dir string) { mountImage(t, dir, "xfs", "-q") }},
		{"tmpfs", func(t *testing.T, dir string) { mountTmpfs(t, dir, "size=512m") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if os.Getuid() != 0 {
				t.Skipf("SKIPPED the contract on %s: mounting needs root", c.name)
			}
			dir := t.TempDir()
			c.mount(t, dir)
			for _, name := range backend.Names {
				t.Run(name, func(t *testing.T) {
					fs := selected(t, name)
					if got := fs.Caps(dir).FileSystem; got != c.name && got != "unknown" { // as portable says
						t.Fatalf("the backend takes %s for %s", c.name, got)
					}
					disktest.Run(t, func(t *testing.T) (disk.FS, string) {
						sub, err := os.MkdirTemp(dir, "")
						if err != nil {
							t.Fatal(err)
						}
						t.Cleanup(func() { os.RemoveAll(sub) })
						return selected(t, name), sub
					})
				})
			}
		})
	}
}

// mountTmpfs mounts a file system in memory on dir, until the test ends.
func mountTmpfs(t *testing.T, dir, options string) {
	t.Helper()
	if err := unix.Mount("platter-test", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("SKIPPED what needs a tmpfs of its own: %v (needs root)", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// imageBytes is the size of a file system on a loop device: XFS takes none below 300 MiB. The image is sparse.
const imageBytes = 512 << 20

// mountImage makes a file system in an image file, and mounts it on dir by a loop device, until the test
// ends. The kernel gives the device back with the mount.
func mountImage(t *testing.T, dir, kind string, mkfsFlags ...string) {
	t.Helper()
	mkfs, err := exec.LookPath("mkfs." + kind)
	if err != nil {
		t.Skipf("SKIPPED the contract on %s: mkfs.%s is not installed", kind, kind)
	}
	image := filepath.Join(t.TempDir(), kind+".img")
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(imageBytes); err != nil {
		t.Fatal(err)
	}
	if out, err := run(mkfs, append(mkfsFlags, image)...); err != nil {
		t.Skipf("SKIPPED the contract on %s: mkfs: %v: %s", kind, err, out)
	}
	if out, err := run("mount", "-t", kind, "-o", "loop", image, dir); err != nil {
		t.Skipf("SKIPPED the contract on %s: mount: %v: %s", kind, err, out)
	}
	t.Cleanup(func() {
		if _, err := run("umount", dir); err != nil {
			unix.Unmount(dir, unix.MNT_DETACH)
		}
	})
}

func run(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return exec.CommandContext(ctx, name, args...).CombinedOutput()
}
