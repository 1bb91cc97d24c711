//go:build linux && !portable && !nouring

package uring

import (
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/psync"
)

// file is an open file whose writes go through the ring.
type file struct {
	disk.File // psync's
	device    *device
}

// Unwrap is psync's file.
func (f *file) Unwrap() disk.File { return f.File }

// WriteV hands the buffers over as vectored writes, one after the other.
func (f *file) WriteV(bufs [][]byte, pos int64) (int64, error) {
	q := f.device.ring()
	if q == nil {
		f.device.stats.plain.Add(1)
		return f.File.WriteV(bufs, pos)
	}
	if err := disk.CheckRange("write", f.Path(), pos, disk.VectorBytes(bufs)); err != nil {
		return 0, err
	}
	fd, err := psync.Pin(f.File)
	if err != nil {
		return 0, disk.Fail("write", f.Path(), pos, err)
	}
	defer psync.Unpin(f.File)
	j := jobs.Get().(*job)
	j.device, j.queue, j.fd = f.device, q, int32(fd)
	n, err := psync.WriteAll(j, f.Path(), bufs, pos)
	j.release()
	return n, err
}

// WriteVector hands one vector over.
func (j *job) WriteVector(iov []unix.Iovec, pos int64) (int, unix.Errno) {
	j.ops = append(j.ops[:0], op{code: sys.IORING_OP_WRITEV, fd: j.fd,
		ptr: unsafe.Pointer(unsafe.SliceData(iov)), len: len(iov), pos: pos})
	o := &j.ops[0]
	if j.queue.do(j.ops) != nil || o.errno == unix.ECANCELED { // it was never begun
		j.device.stats.plain.Add(1)
		return psync.Pwritev(int(j.fd), iov, pos)
	}
	return o.done, o.errno
}
