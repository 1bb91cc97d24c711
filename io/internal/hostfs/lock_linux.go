//go:build linux

package hostfs

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"platter/io/disk"
)

// lockFile takes an open-file-description lock (fcntl(2)): unlike flock it excludes the POSIX locks
// that Java, and so Apache Kafka, takes on the same .lock file, and unlike those it excludes a second
// handle in this process.
func lockFile(f *os.File) error {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	for {
		err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN, unix.EACCES:
			return disk.ErrLocked
		}
		return err
	}
}
