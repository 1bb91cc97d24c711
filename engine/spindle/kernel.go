package spindle

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"

	"platter/io/disk"
)

// procBytesMax bounds what is read of one of the kernel's files.
const procBytesMax = 64 << 10

// readProc reads one of the kernel's files, which have no size.
func readProc(fs disk.FS, path string) ([]byte, error) {
	f, err := fs.Open(path, disk.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := make([]byte, procBytesMax)
	n, err := f.ReadAt(p, 0)
	if n > 0 {
		return p[:n], nil
	}
	return nil, err
}

// memInfo is a line of /proc/meminfo in bytes; 0: unknown (proc(5) gives kB, which are KiB).
func memInfo(p []byte, key string) int64 {
	for sc := bufio.NewScanner(bytes.NewReader(p)); sc.Scan(); {
		name, rest, ok := strings.Cut(sc.Text(), ":")
		if !ok || name != key {
			continue
		}
		if f := strings.Fields(rest); len(f) > 0 {
			n, err := strconv.ParseInt(f[0], 10, 64)
			if err == nil && n >= 0 && n < 1<<50 {
				return n << 10
			}
		}
	}
	return 0
}

// Bounds of what cold readers may hold of the page cache where nobody has said.
const (
	memoryMin     = 128 << 20
	memoryMax     = 1 << 30
	memoryPart    = 8 // of the machine's memory
	memoryUnknown = 256 << 20
)

// MemoryDefault is what cold readers of one device may hold of the page cache: an eighth of the machine's memory, between
// 128 MiB and 1 GiB.
func MemoryDefault(fs disk.FS) int64 {
	p, err := readProc(fs, "/proc/meminfo")
	total := memInfo(p, "MemTotal")
	if err != nil || total == 0 {
		return memoryUnknown
	}
	return min(max(total/memoryPart, memoryMin), memoryMax)
}
