// Package rawdisk reads and writes one file past the page cache (O_DIRECT, open(2)), so that a bench sees the device and
// not the memory before it. Nothing else in Platter does that: the broker's only data cache is the page cache.
//
// Positions, lengths and buffers are multiples of AlignBytes, the buffers from Buffer. Calls may run at once. Errors are
// disk's: disk.ErrUnsupported where the platform or the file system has no such access. That a file system takes the flag does
// not prove that it obeys: tmpfs has no device, ZFS and some in user space may answer from memory all the same.
package rawdisk

import (
	"unsafe"

	"platter/io/disk"
)

// AlignBytes is what positions, lengths and addresses are multiples of: enough for every disk with sectors of up to 4 KiB.
const AlignBytes = 4096

// Buffer is n bytes at an aligned address.
func Buffer(n int) []byte {
	b := make([]byte, n+AlignBytes)
	skip := 0
	if r := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % AlignBytes); r > 0 {
		skip = AlignBytes - r
	}
	return b[skip : skip+n : skip+n]
}

// Probe tells whether path, a file of at least AlignBytes that is there, can be read so: nil, or why it cannot.
func Probe(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	_, err = f.ReadAt(Buffer(AlignBytes), 0)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func failed(op, path string, pos int64, err error) error {
	return disk.Fail(op+" past the page cache", path, pos, err)
}
