//go:build linux && !portable

package backend

import (
	"platter/io/disk"
	"platter/io/psync"
)

func native() []candidate {
	return append(ring(), candidate{"psync", func() (disk.FS, error) { return psync.New(), nil }})
}

// auto takes plain system calls, and the ring beside them where the kernel lets us have one.
func auto() (disk.FS, string) {
	fs, err := mixed()
	if err != nil {
		return psync.New(), "plain system calls for everything: " + err.Error()
	}
	return fs, "plain system calls, and io_uring for sets where the file system makes it pay"
}
