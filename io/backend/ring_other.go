//go:build linux && !portable && (nouring || !(amd64 || arm64 || loong64 || ppc64le || riscv64 || s390x))

package backend

import (
	"errors"

	"platter/io/disk"
)

func ring() []candidate { return nil }

func mixed() (disk.FS, error) { return nil, errors.New("io_uring is not in this build") }

// throughRing: there is no ring.
func throughRing(disk.FS, string) (func(op string) bool, bool) { return nil, false }

func ringStats(disk.FS) (RingStats, bool) { return RingStats{}, false }
