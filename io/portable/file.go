package portable

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"platter/io/disk"
	"platter/io/gate"
	"platter/io/internal/hostfs"
)

// scratchBytes bounds what WriteV gathers into one write. A larger buffer goes out by itself.
const scratchBytes = 128 << 10

var (
	// scratch is what WriteV gathers in.
	scratch      = sync.Pool{New: func() any { return new([scratchBytes]byte) }}
	errDirectory = errors.New("is a directory")
)

type file struct {
	path string
	f    *os.File
	gate *gate.Gate
	pins hostfs.Pins
}

// do runs a call that may wait for the disk.
func (f *file) do(op string, pos int64, call func(*os.File) error) error {
	err := f.pins.Enter()
	if err == nil {
		err = f.through(gate.Write, call)
		f.leave()
	}
	return disk.Fail(op, f.path, pos, err)
}

// through makes a call that holds a thread while it waits for the disk.
func (f *file) through(side gate.Side, call func(*os.File) error) error {
	f.gate.Enter(side)
	defer f.gate.Leave(side)
	return call(f.f)
}

func (f *file) leave() {
	if f.pins.Leave() {
		_ = f.through(gate.Write, (*os.File).Close)
	}
}

func (f *file) Path() string { return f.path }

func (f *file) Size() (size int64, err error) {
	err = f.do("size", -1, func(o *os.File) error {
		fi, err := o.Stat()
		if err == nil {
			size = fi.Size()
		}
		return err
	})
	return size, err
}

func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	if err := disk.CheckRange("read", f.path, pos, int64(len(p))); err != nil {
		return 0, err
	}
	if err := f.pins.Enter(); err != nil {
		return 0, disk.Fail("read", f.path, pos, err)
	}
	defer f.leave()
	return (*pinned)(f).ReadAt(p, pos)
}

// pinned is the file for an operation that has entered already: a Close meanwhile does not end it.
type pinned file

func (p *pinned) Path() string { return p.path }

func (p *pinned) ReadAt(b []byte, pos int64) (n int, err error) {
	err = (*file)(p).through(gate.Read, func(o *os.File) error {
		n, err = o.ReadAt(b, pos)
		return err
	})
	if err == io.EOF {
		return n, err
	}
	return n, disk.Fail("read", p.path, pos+int64(n), err)
}

func (f *file) WriteV(bufs [][]byte, pos int64) (n int64, err error) {
	want := disk.VectorBytes(bufs)
	if err := disk.CheckRange("write", f.path, pos, want); err != nil {
		return 0, err
	}
	err = f.do("write", pos, func(*os.File) error {
		n, err = f.writeAll(bufs, pos)
		return err
	})
	return n, err
}

func (f *file) writeAll(bufs [][]byte, pos int64) (n int64, err error) {
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
	if err := f.pins.Enter(); err != nil {
		return 0, disk.Fail("send", f.path, pos, err)
	}
	defer f.leave()
	return disk.CopyTo(dst, (*pinned)(f), pos, n)
}

func (f *file) Sync() error { return f.do("sync", -1, (*os.File).Sync) }

func (f *file) Truncate(size int64) error {
	if err := disk.CheckRange("truncate", f.path, size, 0); err != nil {
		return err
	}
	return f.do("truncate", size, func(o *os.File) error { return o.Truncate(size) })
}

func (f *file) Preallocate(pos, n int64) error { return f.unsupported("preallocate", pos, n) }

func (f *file) WriteBehind(pos, n int64) error { return f.unsupported("write behind", pos, n) }

func (f *file) Advise(pos, n int64, _ disk.Advice) error { return f.unsupported("advise", pos, n) }

func (f *file) Resident(pos, n int64) (int64, error) { return 0, f.unsupported("resident", pos, n) }

// ReleaseTail has nothing to give back, since Preallocate takes nothing.
func (f *file) ReleaseTail() error { return nil }

func (f *file) unsupported(op string, pos, n int64) error {
	if err := disk.CheckRange(op, f.path, pos, n); err != nil {
		return err
	}
	return disk.Fail(op, f.path, pos, disk.ErrUnsupported)
}

func (f *file) Close() error {
	last, err := f.pins.Close()
	if last {
		err = f.through(gate.Write, (*os.File).Close)
	}
	return disk.Fail("close", f.path, -1, err)
}
