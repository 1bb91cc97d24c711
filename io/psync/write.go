//go:build linux && !portable

package psync

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/gate"
)

// vectorMax is IOV_MAX of Linux (UIO_MAXIOV, readv(2)).
const vectorMax = 1024

type vectors [vectorMax]unix.Iovec

var vectorPool = sync.Pool{New: func() any { return new(vectors) }}

func (f *file) WriteV(bufs [][]byte, pos int64) (n int64, err error) {
	if err := disk.CheckRange("write", f.path, pos, disk.VectorBytes(bufs)); err != nil {
		return 0, err
	}
	if err := f.pins.Enter(); err != nil {
		return 0, disk.Fail("write", f.path, pos, err)
	}
	defer f.leave()
	f.gate.Enter(gate.Write)
	defer f.gate.Leave(gate.Write)
	return WriteAll(f, f.path, bufs, pos)
}

// WriteVector is one pwritev(2).
func (f *file) WriteVector(iov []unix.Iovec, pos int64) (int, unix.Errno) {
	return Pwritev(f.fd, iov, pos)
}

// VectorWriter writes one vector of at most IOV_MAX buffers, and may write less.
type VectorWriter interface {
	WriteVector(iov []unix.Iovec, pos int64) (int, unix.Errno)
}

// WriteAll writes the buffers one after the other at pos, in calls of at most IOV_MAX buffers. A short
// write goes on where it stopped, so that its cause (a full disk) comes back from the next call.
func WriteAll(w VectorWriter, path string, bufs [][]byte, pos int64) (n int64, err error) {
	want := disk.VectorBytes(bufs)
	iov := vectorPool.Get().(*vectors)
	next, skip := 0, 0 // the first byte not yet written: bufs[next][skip]
	used := 0
	for n < want {
		count := 0
		for i, off := next, skip; i < len(bufs) && count < vectorMax; i, off = i+1, 0 {
			if b := bufs[i][off:]; len(b) > 0 {
				iov[count].Base = unsafe.SliceData(b)
				iov[count].SetLen(len(b))
				count++
			}
		}
		used = max(used, count)
		wrote, errno := w.WriteVector(iov[:count], pos+n)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			err = disk.Fail("write", path, pos+n, errno)
			break
		}
		if wrote == 0 {
			err = disk.Fail("write", path, pos+n, disk.ErrShortWrite)
			break
		}
		n += int64(wrote)
		for skip += wrote; next < len(bufs) && skip >= len(bufs[next]); next++ {
			skip -= len(bufs[next])
		}
	}
	clear(iov[:used]) // the pool must not keep the caller's buffers alive
	vectorPool.Put(iov)
	return n, err
}

// Pwritev is unix.Pwritev without its copy of the vector, which allocates above eight buffers.
func Pwritev(fd int, iov []unix.Iovec, pos int64) (int, unix.Errno) {
	low, high := words(pos)
	n, _, errno := unix.Syscall6(unix.SYS_PWRITEV, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(iov))), uintptr(len(iov)), low, high, 0)
	return int(n), errno
}

// words is a position as the vectored calls take it: two words of the machine's size, low first.
func words(pos int64) (low, high uintptr) {
	const wordBits = 32 << (^uintptr(0) >> 63)
	return uintptr(pos), uintptr(uint64(pos) >> (wordBits - 1) >> 1)
}
