//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package hostfs

import (
	"os"

	"golang.org/x/sys/unix"

	"platter/io/disk"
)

// lockFile takes a flock(2) lock, which these systems also hold against POSIX locks.
func lockFile(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case unix.EINTR:
			continue
		case unix.EWOULDBLOCK:
			return disk.ErrLocked
		}
		return err
	}
}
