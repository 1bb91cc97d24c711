package memdisk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"

	"platter/io/disk"
)

var errReadOnly = errors.New("file is open for reading only")

// file is one handle.
type file struct {
	m        *FS
	node     *node
	path     string
	life     int
	readOnly bool
	closed   bool
}

// Open opens path. Creating a file is an operation, opening one is not.
func (m *FS) Open(path string, mode disk.Mode) (disk.File, error) {
	if mode == disk.Create || mode == disk.CreateNew {
		if err := m.create(path, mode == disk.CreateNew); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookUp(path)
	if err == nil && n.isDir() {
		err = errDirectory
	}
	if err != nil {
		return nil, disk.Fail("open", path, -1, err)
	}
	n.handles++
	return &file{m: m, node: n, path: path, life: m.life, readOnly: mode == disk.ReadOnly}, nil
}

func (m *FS) create(path string, must bool) error {
	m.mu.Lock()
	n, err := m.lookUp(path)
	m.mu.Unlock()
	switch {
	case err == nil && must:
		return disk.Fail("open", path, -1, fs.ErrExist)
	case err == nil && n != nil:
		return nil
	case errors.Is(err, ErrCrashed):
		return disk.Fail("open", path, -1, err)
	}
	return m.op(Op{Kind: "create", Path: path}, func() error {
		dir, name, err := m.parent(path)
		if err != nil {
			return err
		}
		if dir.children[name] == nil {
			m.link(dir, name, m.newNode(false))
		} else if must {
			return fs.ErrExist
		}
		return nil
	})
}

// Lock takes path for as long as the returned handle is open and the process lives.
func (m *FS) Lock(path string) (io.Closer, error) {
	f, err := m.Open(path, disk.Create)
	if err != nil {
		return nil, err
	}
	l := &lock{f.(*file)}
	m.mu.Lock()
	taken := m.locks[l.node]
	m.locks[l.node] = true
	m.mu.Unlock()
	if taken {
		f.Close()
		return nil, disk.Fail("lock", path, -1, disk.ErrLocked)
	}
	return l, nil
}

type lock struct{ *file }

func (l *lock) Close() error {
	l.m.mu.Lock()
	if l.check() == nil {
		delete(l.m.locks, l.node)
	}
	l.m.mu.Unlock()
	return l.file.Close()
}

// check is called with the lock held.
func (f *file) check() error {
	switch {
	case f.m.dead || f.life != f.m.life:
		return ErrCrashed
	case f.closed:
		return disk.ErrClosed
	}
	return nil
}

func (f *file) checkWrite() error {
	if f.readOnly {
		return errReadOnly
	}
	return f.check()
}

func (f *file) Path() string { return f.path }

func (f *file) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check(); err != nil {
		return 0, disk.Fail("size", f.path, -1, err)
	}
	return f.node.content.now.size, nil
}

func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	if err := disk.CheckRange("read", f.path, pos, int64(len(p))); err != nil {
		return 0, err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check(); err != nil {
		return 0, disk.Fail("read", f.path, pos, err)
	}
	im := f.node.content.now
	n := max(0, min(int64(len(p)), im.size-pos))
	im.readAt(p[:n], pos)
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// Resident: what is in the file is in memory.
func (f *file) Resident(pos, n int64) (int64, error) {
	if err := disk.CheckRange("resident", f.path, pos, n); err != nil {
		return 0, err
	}
	size, err := f.Size()
	if err != nil {
		return 0, disk.Fail("resident", f.path, pos, err)
	}
	return max(0, min(n, size-pos)), nil
}

func (f *file) WriteV(bufs [][]byte, pos int64) (int64, error) {
	want := disk.VectorBytes(bufs)
	if err := disk.CheckRange("write", f.path, pos, want); err != nil {
		return 0, err
	}
	// In one piece: no crash may see a sector that only some of the buffers have reached.
	joined := bytes.Join(bufs, nil)
	return f.m.opPart(Op{Kind: "write", Path: f.path, Pos: pos, Len: want}, func(most int64) (n int64, err error) {
		if err := f.checkWrite(); err != nil {
			return 0, err
		}
		n, err = f.write(joined[:min(want, most)], pos)
		f.node.modMs = f.m.clock.NowMs()
		f.node.content.grown()
		return n, err
	})
}

// write fills page after page for as long as there is room.
func (f *file) write(b []byte, pos int64) (n int64, err error) {
	for len(b) > 0 {
		i := pos / pageBytes
		if err := f.takePage(i); err != nil {
			return n, err
		}
		part := min(int64(len(b)), pageBytes-pos%pageBytes)
		f.node.content.writePage(b[:part], pos)
		b, pos, n = b[part:], pos+part, n+part
	}
	return n, nil
}

// takePage makes sure that page i has room on the disk.
func (f *file) takePage(i int64) error {
	switch {
	case f.node.content.now.pages[i] != nil:
	case f.node.reserved[i]:
		delete(f.node.reserved, i)
	default:
		return f.m.take()
	}
	return nil
}

func (m *FS) take() error {
	if m.capacity > 0 && m.used+pageBytes > m.capacity {
		return disk.ErrFull
	}
	m.used += pageBytes
	return nil
}

func (f *file) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	if err := disk.CheckRange("send", f.path, pos, n); err != nil {
		return 0, err
	}
	f.m.mu.Lock()
	if err := f.check(); err != nil {
		f.m.mu.Unlock()
		return 0, disk.Fail("send", f.path, pos, err)
	}
	own := *f // a Close meanwhile does not disturb it
	f.node.handles++
	f.m.mu.Unlock()
	defer own.Close()
	return disk.CopyTo(dst, &own, pos, n)
}

func (f *file) Sync() error {
	return f.m.op(Op{Kind: "sync", Path: f.path}, func() error {
		if err := f.check(); err != nil {
			return err
		}
		f.node.content.sync()
		return nil
	})
}

func (f *file) Truncate(size int64) error {
	if err := disk.CheckRange("truncate", f.path, size, 0); err != nil {
		return err
	}
	return f.m.op(Op{Kind: "truncate", Path: f.path, Pos: size}, func() error {
		if err := f.checkWrite(); err != nil {
			return err
		}
		before := f.node.pageCount()
		f.node.content.truncate(size)
		f.releaseTail()
		f.m.used -= int64(before-f.node.pageCount()) * pageBytes
		f.node.modMs = f.m.clock.NowMs()
		return nil
	})
}

func (f *file) releaseTail() {
	for i := range f.node.reserved {
		if i*pageBytes >= f.node.content.now.size {
			delete(f.node.reserved, i)
		}
	}
}

func (f *file) Preallocate(pos, n int64) error {
	if err := disk.CheckRange("preallocate", f.path, pos, n); err != nil {
		return err
	}
	return f.m.op(Op{Kind: "preallocate", Path: f.path, Pos: pos, Len: n}, func() error {
		if err := f.checkWrite(); err != nil {
			return err
		}
		for i := pos / pageBytes; i*pageBytes < pos+n; i++ {
			if f.node.content.now.pages[i] != nil || f.node.reserved[i] {
				continue
			}
			if err := f.m.take(); err != nil {
				return err
			}
			f.node.reserved[i] = true
		}
		return nil
	})
}

func (f *file) ReleaseTail() error {
	return f.m.op(Op{Kind: "release", Path: f.path}, func() error {
		if err := f.checkWrite(); err != nil {
			return err
		}
		before := f.node.pageCount()
		f.releaseTail()
		f.m.used -= int64(before-f.node.pageCount()) * pageBytes
		return nil
	})
}

// WriteBehind has no effect: a crash may keep unsynced bytes anyway.
func (f *file) WriteBehind(pos, n int64) error { return f.hint("write behind", pos, n) }

// Advise has no effect.
func (f *file) Advise(pos, n int64, _ disk.Advice) error { return f.hint("advise", pos, n) }

func (f *file) hint(op string, pos, n int64) error {
	if err := disk.CheckRange(op, f.path, pos, n); err != nil {
		return err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return disk.Fail(op, f.path, pos, f.check())
}

func (f *file) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.life != f.m.life {
		return nil // it went down with its process
	}
	if f.closed {
		return disk.Fail("close", f.path, -1, disk.ErrClosed)
	}
	f.closed = true
	f.node.handles--
	f.m.drop(f.node)
	return nil
}
