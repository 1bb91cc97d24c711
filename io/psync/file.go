//go:build linux && !portable

package psync

import (
	"io"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/gate"
	"platter/io/internal/hostfs"
)

type file struct {
	fs   *FS
	path string
	fd   int
	dev  uint64
	gate *gate.Gate
	pins hostfs.Pins
	maps maps
}

func (f *file) leave() {
	if f.pins.Leave() {
		f.close()
	}
}

// close waits for the disk where it is the last one of a removed file.
func (f *file) close() error {
	f.maps.close()
	f.gate.Enter(gate.Write)
	defer f.gate.Leave(gate.Write)
	return unix.Close(f.fd)
}

// do runs a call that changes the file, or makes it durable.
func (f *file) do(op string, pos int64, call func(fd int) error) error {
	return f.through(gate.Write, op, pos, call)
}

// look runs a call that asks the disk for what is there.
func (f *file) look(op string, pos int64, call func(fd int) error) error {
	return f.through(gate.Read, op, pos, call)
}

func (f *file) through(side gate.Side, op string, pos int64, call func(fd int) error) error {
	err := f.pins.Enter()
	if err == nil {
		f.gate.Enter(side)
		_, err = retry(func() (struct{}, error) { return struct{}{}, call(f.fd) })
		f.gate.Leave(side)
		f.leave()
	}
	return disk.Fail(op, f.path, pos, err)
}

func (f *file) Path() string { return f.path }

func (f *file) Size() (int64, error) {
	var st unix.Stat_t
	err := f.look("size", -1, func(fd int) error { return unix.Fstat(fd, &st) })
	return st.Size, err
}

func (f *file) ReadAt(p []byte, pos int64) (int, error) { return f.enterRead(p, pos, false) }

func (f *file) enterRead(p []byte, pos int64, cold bool) (int, error) {
	if err := disk.CheckRange("read", f.path, pos, int64(len(p))); err != nil {
		return 0, err
	}
	if err := f.pins.Enter(); err != nil {
		return 0, disk.Fail("read", f.path, pos, err)
	}
	defer f.leave()
	return f.read(p, pos, cold)
}

func (f *file) read(p []byte, pos int64, cold bool) (n int, err error) {
	f.gate.Enter(gate.Read)
	defer f.gate.Leave(gate.Read)
	for n < len(p) {
		var got int
		if cold {
			got, err = f.preadCold(p[n:], pos+int64(n))
		} else {
			got, err = unix.Pread(f.fd, p[n:], pos+int64(n))
		}
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, disk.Fail("read", f.path, pos+int64(n), err)
		case got == 0:
			return n, io.EOF
		default:
			n += got
		}
	}
	return n, nil
}

func (f *file) Sync() error {
	return f.do("sync", -1, unix.Fdatasync)
}

func (f *file) Truncate(size int64) error {
	if err := disk.CheckRange("truncate", f.path, size, 0); err != nil {
		return err
	}
	return f.do("truncate", size, func(fd int) error { return unix.Ftruncate(fd, size) })
}

func (f *file) Preallocate(pos, n int64) error {
	if err := disk.CheckRange("preallocate", f.path, pos, n); err != nil || n == 0 {
		return err
	}
	return f.do("preallocate", pos, func(fd int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, pos, n)
	})
}

// ReleaseTail cuts the file to the size it has: ext4 and XFS then free the blocks beyond it.
func (f *file) ReleaseTail() error {
	var st unix.Stat_t
	return f.do("release tail", -1, func(fd int) error {
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		return unix.Ftruncate(fd, st.Size)
	})
}

func (f *file) WriteBehind(pos, n int64) error {
	if err := disk.CheckRange("write behind", f.path, pos, n); err != nil || n == 0 {
		return err
	}
	return f.do("write behind", pos, func(fd int) error {
		return unix.SyncFileRange(fd, pos, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

var advices = [...]int{
	disk.Sequential: unix.FADV_SEQUENTIAL,
	disk.Random:     unix.FADV_RANDOM,
	disk.WillNeed:   unix.FADV_WILLNEED,
	disk.DontNeed:   unix.FADV_DONTNEED,
}

func (f *file) Advise(pos, n int64, a disk.Advice) error {
	if err := disk.CheckRange("advise", f.path, pos, n); err != nil || n == 0 {
		return err
	}
	return f.look("advise", pos, func(fd int) error {
		if a == disk.DontNeed {
			f.maps.drop(pos, n)
		}
		return unix.Fadvise(fd, pos, n, advices[a])
	})
}

func (f *file) Close() error {
	last, err := f.pins.Close()
	if last {
		err = f.close()
	}
	return disk.Fail("close", f.path, -1, err)
}
