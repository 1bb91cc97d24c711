//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64 || s390x) && !portable && !nouring

package backend

import (
	"platter/io/disk"
	"platter/io/uring"
)

func ring() []candidate {
	return []candidate{{"uring", func() (disk.FS, error) { return uring.New(uring.Options{}) }}}
}

// mixed is what auto takes: the ring where it pays, or why there is none.
func mixed() (disk.FS, error) { return uring.New(uring.Options{Name: "auto", Choose: choose}) }

// ringOps are the operations of the table that can go through a ring.
var ringOps = map[string]uring.Ops{
	OpAppend: uring.Writes, OpReadBatch: uring.WarmReads, OpReadCold: uring.ColdReads, OpSyncSet: uring.Syncs,
}

// choose is the static choice for one file system.
func choose(c disk.Caps) (ops uring.Ops) {
	for op, bit := range ringOps {
		if pays, _ := ringPays(op, c); pays {
			ops |= bit
		}
	}
	return ops
}

// throughRing tells which operations go through the ring under dir; ok is false for a backend without one.
func throughRing(fs disk.FS, dir string) (has func(op string) bool, ok bool) {
	u, ok := fs.(*uring.FS)
	if !ok {
		return nil, false
	}
	ops := u.Ops(dir)
	return func(op string) bool { return ops&ringOps[op] != 0 }, true
}

func ringStats(fs disk.FS) (RingStats, bool) {
	u, ok := fs.(*uring.FS)
	if !ok {
		return RingStats{}, false
	}
	return RingStats(u.Stats()), true
}
