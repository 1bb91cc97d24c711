//go:build !linux || portable

package backend

import (
	"platter/io/disk"
	"platter/io/portable"
)

func native() []candidate { return nil }

func auto() (disk.FS, string) { return portable.New(), "there is no native backend in this build" }

// throughRing: there is no ring.
func throughRing(disk.FS, string) (func(op string) bool, bool) { return nil, false }

func ringStats(disk.FS) (RingStats, bool) { return RingStats{}, false }
