//go:build linux || darwin || freebsd

package hostfs

import (
	"golang.org/x/sys/unix"

	"platter/io/disk"
)

func space(path string) (disk.Space, error) {
	var s unix.Statfs_t
	for {
		err := unix.Statfs(path, &s)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return disk.Space{}, err
		}
		// Bavail is signed on some of these systems, and may then be below zero on a full disk.
		return disk.Space{
			TotalBytes: int64(s.Blocks) * int64(s.Bsize),
			FreeBytes:  max(0, int64(s.Bavail)) * int64(s.Bsize),
		}, nil
	}
}
