//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package hostfs

import (
	"os"

	"platter/io/disk"
)

func lockFile(*os.File) error { return disk.ErrUnsupported }
