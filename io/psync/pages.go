//go:build linux && !portable

package psync

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"platter/io/disk"
)

var pageBytes = int64(os.Getpagesize())

// Resident asks cachestat(2), and where the kernel has no such call (before 6.5) or a sandbox forbids
// it, mincore(2) on a mapping that is made for the question.
func (f *file) Resident(pos, n int64) (int64, error) {
	if err := disk.CheckRange("resident", f.path, pos, n); err != nil || n == 0 {
		return 0, err
	}
	// The pages that the range touches.
	start := pos / pageBytes * pageBytes
	count := (pos + n - start + pageBytes - 1) / pageBytes
	var found int64
	err := f.look("resident", pos, func(fd int) (err error) {
		found, err = cachestat(fd, start, count)
		if err == unix.ENOSYS || err == unix.EPERM || err == unix.EOPNOTSUPP {
			found, err = mincore(fd, start, count)
		}
		return err
	})
	return max(0, n-max(0, count-found)*pageBytes), err
}

func cachestat(fd int, start, count int64) (int64, error) {
	var st unix.Cachestat_t
	err := unix.Cachestat(uint(fd), &unix.CachestatRange{Off: uint64(start), Len: uint64(count * pageBytes)}, &st, 0)
	return int64(st.Cache), err
}

// mincorePagesMax bounds one mapping, and the bytes of the answer.
const mincorePagesMax = 4096

func mincore(fd int, start, count int64) (found int64, err error) {
	var answer [mincorePagesMax]byte
	for count > 0 {
		n := min(count, mincorePagesMax)
		m, err := unix.Mmap(fd, start, int(n*pageBytes), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, err
		}
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(m))),
			uintptr(len(m)), uintptr(unsafe.Pointer(&answer)))
		unix.Munmap(m)
		if errno != 0 {
			return 0, errno
		}
		for _, page := range answer[:n] {
			found += int64(page & 1)
		}
		start, count = start+n*pageBytes, count-n
	}
	return found, nil
}

// probePages asks what the file system can do with the page cache. fd is a scratch file.
func probePages(fd int, c *disk.Caps) {
	p := make([]byte, pageBytes)
	if _, err := unix.Pwrite(fd, p, 0); err != nil {
		return // a full disk: claim nothing
	}
	_, err := cachestat(fd, 0, 1)
	if err != nil {
		_, err = mincore(fd, 0, 1)
	}
	c.Resident = err == nil
	_, errno := preadv2(fd, p, 0, unix.RWF_DONTCACHE)
	c.DontCache = errno == 0
	_, errno = preadv2(fd, p, 0, unix.RWF_NOWAIT)
	c.NoWaitRead = errno == 0 || errno == unix.EAGAIN
	_, err = unix.Pwritev2(fd, [][]byte{p}, pageBytes, unix.RWF_NOWAIT)
	c.NoWaitAppend = err == nil || err == unix.EAGAIN
}
