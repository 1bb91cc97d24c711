package faultdisk

import (
	"io"
	"net"
	"syscall"

	"platter/io/disk"
)

type file struct {
	fs    *FS
	inner disk.File
}

func (f *file) Path() string { return f.inner.Path() }

// Size meets the rules for stat.
func (f *file) Size() (int64, error) {
	if _, err := f.fs.meet("stat", -1, 0, f.Path()); err != nil {
		return 0, err
	}
	return f.inner.Size()
}

func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	ft, err := f.fs.meet("read", pos, int64(len(p)), f.Path())
	if err != nil {
		return 0, err
	}
	return f.read(ft, p, pos)
}

// read reads under a fault that was met already.
func (f *file) read(ft fault, p []byte, pos int64) (int, error) {
	most := ft.cut(int64(len(p)))
	n, err := f.inner.ReadAt(p[:most], pos)
	if err != nil && err != io.EOF {
		return n, err
	}
	switch {
	case ft.is(bitflip):
		ft.flip(p[:n])
	case most == int64(len(p)):
	case ft.is(short):
		return n, disk.Fail("read", f.Path(), pos+int64(n), ft.shortError(syscall.EIO))
	case ft.idle():
		clear(p[n:])
		return len(p), nil
	}
	return n, err
}

func (f *file) WriteV(bufs [][]byte, pos int64) (int64, error) {
	want := disk.VectorBytes(bufs)
	ft, err := f.fs.meet("write", pos, want, f.Path())
	if err != nil {
		return 0, err
	}
	if ft.rule == nil {
		return f.inner.WriteV(bufs, pos)
	}
	joined := make([]byte, 0, want) // the caller's buffers are not ours to change
	for _, b := range bufs {
		joined = append(joined, b...)
	}
	if ft.is(bitflip) {
		ft.flip(joined)
	}
	n, err := f.inner.WriteV([][]byte{joined[:ft.cut(want)]}, pos)
	if err != nil || n == want {
		return n, err
	}
	if ft.is(short) {
		return n, disk.Fail("write", f.Path(), pos+n, ft.shortError(disk.ErrShortWrite))
	}
	return want, nil
}

func (f *file) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	ft, err := f.fs.meet("send", pos, n, f.Path())
	if err != nil {
		return 0, err
	}
	switch {
	case ft.is(bitflip), ft.idle():
		return disk.CopyTo(dst, &source{f, ft, pos}, pos, n)
	case ft.is(short) && n > ft.rule.bytes:
		sent, err := f.inner.SendTo(dst, pos, ft.rule.bytes)
		if err == nil {
			err = disk.Fail("send", f.Path(), pos+sent, ft.shortError(syscall.EIO))
		}
		return sent, err
	}
	return f.inner.SendTo(dst, pos, n)
}

// source is what a faulty send reads: wrong bits in the first piece, or zeros beyond a cut.
type source struct {
	*file
	ft    fault
	start int64
}

func (s *source) ReadAt(p []byte, pos int64) (int, error) {
	if s.ft.idle() {
		good := max(0, min(int64(len(p)), s.start+s.ft.cut(1<<62)-pos))
		n, err := s.inner.ReadAt(p[:good], pos)
		if int64(n) < good {
			return n, err
		}
		clear(p[good:])
		return len(p), nil
	}
	n, err := s.inner.ReadAt(p, pos)
	if pos == s.start {
		s.ft.flip(p[:n])
	}
	return n, err
}

func (f *file) simple(op string, pos, n int64, run func() error) error {
	ft, err := f.fs.meet(op, pos, n, f.Path())
	if err != nil || ft.idle() {
		return err
	}
	return run()
}

func (f *file) Sync() error { return f.simple("sync", -1, 0, f.inner.Sync) }

func (f *file) Truncate(size int64) error {
	return f.simple("truncate", size, 0, func() error { return f.inner.Truncate(size) })
}

func (f *file) Preallocate(pos, n int64) error {
	return f.simple("preallocate", pos, n, func() error { return f.inner.Preallocate(pos, n) })
}

func (f *file) Resident(pos, n int64) (int64, error) { return f.inner.Resident(pos, n) }

func (f *file) ReleaseTail() error { return f.inner.ReleaseTail() }

func (f *file) WriteBehind(pos, n int64) error { return f.inner.WriteBehind(pos, n) }

func (f *file) Advise(pos, n int64, a disk.Advice) error { return f.inner.Advise(pos, n, a) }

// Close always closes: a file system may fail a close, but it never keeps the descriptor.
func (f *file) Close() error {
	_, err := f.fs.meet("close", -1, 0, f.Path())
	if inner := f.inner.Close(); err == nil {
		err = inner
	}
	return err
}
