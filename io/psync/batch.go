//go:build linux && !portable

package psync

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"platter/io/disk"
)

// ReadBatch does the reads side by side, at most ReadCount at a time, each on a goroutine. Where the
// file system can, cold ones leave no pages behind.
func (fs *FS) ReadBatch(reads []disk.Read, cold bool) {
	disk.ReadEachBy(reads, ReadCount, func(r *disk.Read) {
		f, ok := own(r.File)
		if ok && cold {
			r.N, r.Err = f.enterRead(r.Buf, r.Pos, true)
			return
		}
		r.N, r.Err = r.File.ReadAt(r.Buf, r.Pos)
	})
}

// preadCold is pread that leaves nothing behind, where the device has such a thing.
func (f *file) preadCold(p []byte, pos int64) (int, error) {
	if _, refused := f.fs.keeps.Load(f.dev); !refused {
		n, errno := preadv2(f.fd, p, pos, unix.RWF_DONTCACHE)
		if errno == 0 {
			return n, nil
		}
		if errno != unix.EOPNOTSUPP && errno != unix.EINVAL && errno != unix.ENOSYS {
			return n, errno
		}
		f.fs.keeps.Store(f.dev, true)
	}
	return unix.Pread(f.fd, p, pos)
}

var onePool = sync.Pool{New: func() any { return new(unix.Iovec) }}

// preadv2 reads into one buffer; unix.Preadv2 allocates its vector.
func preadv2(fd int, p []byte, pos int64, flags int) (int, unix.Errno) {
	iov := onePool.Get().(*unix.Iovec)
	iov.Base = unsafe.SliceData(p)
	iov.SetLen(len(p))
	lo, hi := words(pos)
	n, _, errno := unix.Syscall6(unix.SYS_PREADV2, uintptr(fd), uintptr(unsafe.Pointer(iov)), 1, lo, hi, uintptr(flags))
	*iov = unix.Iovec{}
	onePool.Put(iov)
	return int(n), errno
}
