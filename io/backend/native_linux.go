//go:build linux && !portable

package backend

import (
	"platter/io/disk"
	"platter/io/psync"
)

func native() []candidate {
	return []candidate{{"psync", func() disk.FS { return psync.New() },
		"Linux, plain system calls (pwritev, sendfile, fallocate)"}}
}
