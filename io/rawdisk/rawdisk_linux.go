//go:build linux

package rawdisk

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"platter/io/disk"
)

// File is one open file.
type File struct{ f *os.File }

// Open opens a file that is there, to read and to write. The caller closes it.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return nil, failed("open", path, -1, unsupported(err))
	}
	return &File{f}, nil
}

// ReadAt reads len(p) bytes at pos.
func (f *File) ReadAt(p []byte, pos int64) (int, error) {
	n, err := f.f.ReadAt(p, pos)
	if err == io.EOF {
		return n, err
	}
	return n, failed("read", f.f.Name(), pos, unsupported(err))
}

// WriteAt writes p at pos. When it returns, the device has the bytes, in its cache perhaps.
func (f *File) WriteAt(p []byte, pos int64) (int, error) {
	n, err := f.f.WriteAt(p, pos)
	return n, failed("write", f.f.Name(), pos, unsupported(err))
}

// Sync makes what was written durable (fdatasync(2)).
func (f *File) Sync() error {
	for {
		if err := unix.Fdatasync(int(f.f.Fd())); err != unix.EINTR {
			return failed("sync", f.f.Name(), -1, err)
		}
	}
}

// Close releases it.
func (f *File) Close() error { return failed("close", f.f.Name(), -1, f.f.Close()) }

// unsupported: a file system without direct access says EINVAL when it is opened or used.
func unsupported(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		err = pe.Err
	}
	if err == unix.EINVAL || err == unix.EOPNOTSUPP {
		return disk.ErrUnsupported
	}
	return err
}
