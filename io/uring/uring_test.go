//go:build linux && !portable && !nouring

package uring

import (
	"testing"

	"platter/io/disk"
	"platter/io/disk/disktest"
)

// ring is the backend, for as long as the test runs; where the kernel has none the test is skipped.
func open(t testing.TB, o Options) *FS {
	t.Helper()
	fs, err := New(o)
	if err != nil {
		t.Skipf("uring cannot run: %v", err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}

func TestContract(t *testing.T) {
	disktest.Run(t, func(t *testing.T) (disk.FS, string) { return open(t, Options{}), t.TempDir() })
}
