package backend

import "platter/io/disk"

// The operations of Explain's table.
const (
	OpAppend      = "append"
	OpRead        = "read"
	OpReadBatch   = "read batch"
	OpReadCold    = "cold read batch"
	OpSync        = "sync"
	OpSyncSet     = "sync of a set"
	OpSend        = "send"
	OpPreallocate = "preallocate"
	OpWriteBehind = "write behind"
	OpAdvise      = "drop from cache"
	OpResident    = "residency"
)

// Choice is which backend does one kind of operation in one directory, and why. Backend is "none" for an
// operation that nothing here has.
type Choice struct{ Dir, FileSystem, Op, Backend, Reason string }

// Explain tells what was chosen for each operation under each directory (which need not be there yet: its
// nearest parent counts). fs comes from Select.
func Explain(fs disk.FS, dirs []string) (choices []Choice) {
	for _, dir := range dirs {
		caps := fs.Caps(dir)
		for _, op := range []string{OpAppend, OpRead, OpReadBatch, OpReadCold, OpSync, OpSyncSet, OpSend,
			OpPreallocate, OpWriteBehind, OpAdvise, OpResident} {
			backend, reason := explain(fs, dir, op, caps)
			choices = append(choices, Choice{dir, caps.FileSystem, op, backend, reason})
		}
	}
	return choices
}

func explain(fs disk.FS, dir, op string, caps disk.Caps) (backend, reason string) {
	rings, hasRing := throughRing(fs, dir)
	backend = fs.Name()
	if backend == "auto" {
		backend = "psync"
	}
	if lacks(op, caps) {
		return "none", "the file system or the backend has no such operation; it is done without"
	}
	switch {
	case backend == "portable":
		return backend, plainWay[op].portable
	case hasRing && rings(op):
		if fs.Name() != "auto" {
			return "uring", "io.backend=" + fs.Name()
		}
		_, reason = ringPays(op, caps)
		return "uring", reason
	case hasRing && fs.Name() == "auto":
		if _, reason = ringPays(op, caps); reason != "" {
			return "psync", reason
		}
		return "psync", plainWay[op].native
	case hasRing:
		return "psync", plainWay[op].native
	}
	return backend, plainWay[op].native
}

// lacks reports whether an operation is one that this file system and backend do without.
func lacks(op string, c disk.Caps) bool {
	switch op {
	case OpPreallocate:
		return !c.Preallocate
	case OpWriteBehind:
		return !c.WriteBehind
	case OpAdvise:
		return !c.Advise
	case OpResident:
		return !c.Resident
	}
	return false
}

// plainWay is how an operation is done without a ring.
var plainWay = map[string]struct{ native, portable string }{
	OpAppend:      {"pwritev on the goroutine that appends", "one write of the gathered buffers"},
	OpRead:        {"pread on the goroutine that reads", "os.File.ReadAt"},
	OpReadBatch:   {"pread, side by side", "os.File.ReadAt, side by side"},
	OpReadCold:    {"preadv2, side by side, with RWF_DONTCACHE where the file system takes it", "os.File.ReadAt, side by side"},
	OpSync:        {"fdatasync", "os.File.Sync"},
	OpSyncSet:     {"fdatasync, side by side", "os.File.Sync, side by side"},
	OpSend:        {"as io.send says: by default copied up to 64 KiB, sendfile above, splice from 256 KiB up", "copied"},
	OpPreallocate: {"fallocate, keeping the size", ""},
	OpWriteBehind: {"sync_file_range", ""},
	OpAdvise:      {"posix_fadvise", ""},
	OpResident:    {"cachestat, or mincore", ""},
}

// ringPays is the static choice of auto: whether an operation goes through the ring on a file system with
// these capabilities, and why. The reason is empty for operations that a ring has nothing to do with.
func ringPays(op string, c disk.Caps) (pays bool, reason string) {
	memory := c.FileSystem == "tmpfs" || c.FileSystem == "memory"
	switch op {
	case OpAppend:
		if !c.NoWaitAppend {
			return false, "a ring would hand each write to a kernel thread (RWF_NOWAIT is refused): pwritev on the goroutine that appends"
		}
		return false, "an append is one call already, and a hand-over to a ring costs more than it: pwritev on the goroutine that appends"
	case OpRead, OpSync:
		return false, "a hand-over to a ring pays for sets only: " + plainWay[op].native
	case OpReadBatch:
		return false, "from the page cache several processors copy faster than a ring's one thread: " + plainWay[op].native
	case OpReadCold:
		if memory {
			return false, "nothing is cold in memory: " + plainWay[op].native
		}
		if !c.NoWaitRead {
			return false, "a ring would hand each read to a kernel thread (RWF_NOWAIT is refused): " + plainWay[op].native
		}
		return true, "the whole batch is one submission, and the disk sees it at once"
	case OpSyncSet:
		if memory {
			return false, "there is nothing to sync in memory: " + plainWay[op].native
		}
		return true, "the whole set is one submission, and the disk sees it at once"
	}
	return false, ""
}
