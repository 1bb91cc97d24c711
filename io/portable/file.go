package portable

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"platter/io/disk"
)

// scratchBytes bounds what WriteV gathers into one write. A larger buffer goes out by itself.
const scratchBytes = 128 << 10

var (
	scratch      = sync.Pool{New: func() any { return new([scratchBytes]byte) }}
	errDirectory = errors.New("is a directory")
	// lane bounds the calls that may each hold a thread: Go dies at 10,000.
	lane = make(chan struct{}, 512)
)

type file struct {
	path string
	f    *os.File
	lane chan struct{}
}

func (f *file) enter() { f.lane <- struct{}{} }
func (f *file) leave() { <-f.lane }

func (f *file) Path() string { return f.path }

func (f *file) Size() (int64, error) {
	fi, err := f.f.Stat()
	if err != nil {
		return 0, disk.Fail("size", f.path, -1, err)
	}
	return fi.Size(), nil
}

func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	if err := disk.CheckRange("read", f.path, pos, int64(len(p))); err != nil {
		return 0, err
	}
	f.enter()
	defer f.leave()
	n, err := f.f.ReadAt(p, pos)
	if err == io.EOF {
		return n, err
	}
	return n, disk.Fail("read", f.path, pos+int64(n), err)
}

func (f *file) WriteV(bufs [][]byte, pos int64) (n int64, err error) {
	var want int64
	for _, b := range bufs {
		want += int64(len(b))
	}
	if err := disk.CheckRange("write", f.path, pos, want); err != nil {
		return 0, err
	}
	f.enter()
	defer f.leave()
	if len(bufs) == 1 {
		return f.write(bufs[0], pos)
	}
	gather := scratch.Get().(*[scratchBytes]byte)
	defer scratch.Put(gather)
	for i := 0; i < len(bufs) && err == nil; {
		run, filled := bufs[i], 0
		for i < len(bufs) && len(bufs[i]) <= scratchBytes-filled {
			filled += copy(gather[filled:], bufs[i])
			i++
		}
		if filled > 0 {
			run = gather[:filled]
		} else {
			i++
		}
		var wrote int64
		wrote, err = f.write(run, pos+n)
		n += wrote
	}
	return n, err
}

func (f *file) write(p []byte, pos int64) (int64, error) {
	n, err := f.f.WriteAt(p, pos)
	if err == io.ErrShortWrite {
		err = disk.ErrShortWrite
	}
	return int64(n), disk.Fail("write", f.path, pos+int64(n), err)
}

func (f *file) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	if err := disk.CheckRange("send", f.path, pos, n); err != nil {
		return 0, err
	}
	return disk.CopyTo(dst, f, pos, n)
}

func (f *file) Sync() error {
	f.enter()
	defer f.leave()
	return disk.Fail("sync", f.path, -1, f.f.Sync())
}

func (f *file) Truncate(size int64) error {
	if err := disk.CheckRange("truncate", f.path, size, 0); err != nil {
		return err
	}
	f.enter()
	defer f.leave()
	return disk.Fail("truncate", f.path, size, f.f.Truncate(size))
}

func (f *file) Preallocate(pos, n int64) error { return f.unsupported("preallocate", pos, n) }

func (f *file) WriteBehind(pos, n int64) error { return f.unsupported("write behind", pos, n) }

func (f *file) Advise(pos, n int64, _ disk.Advice) error { return f.unsupported("advise", pos, n) }

// ReleaseTail has nothing to give back, since Preallocate takes nothing.
func (f *file) ReleaseTail() error { return nil }

func (f *file) unsupported(op string, pos, n int64) error {
	if err := disk.CheckRange(op, f.path, pos, n); err != nil {
		return err
	}
	return disk.Fail(op, f.path, pos, disk.ErrUnsupported)
}

func (f *file) Close() error { return disk.Fail("close", f.path, -1, f.f.Close()) }
