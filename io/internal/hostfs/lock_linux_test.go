//go:build linux

package hostfs

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLockExcludesApacheKafka takes the lock that Java's FileChannel.tryLock takes.
func TestLockExcludesApacheKafka(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lock")
	l, err := Paths{}.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	java, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer java.Close()
	tryLock := func() error {
		return unix.FcntlFlock(java.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart})
	}
	if err := tryLock(); err != unix.EAGAIN && err != unix.EACCES {
		t.Errorf("a POSIX lock beside ours: %v", err)
	}
	l.Close()
	if err := tryLock(); err != nil {
		t.Errorf("a POSIX lock after ours: %v", err)
	}
}
