package hddsim

import (
	"net"
	"sync"

	"platter/io/disk"
)

// file is one handle: the inner one's bytes, the model's time, and this reader's readahead.
type file struct {
	disk.File
	s *FS
	n *node

	reader Reader // touched within live
	random bool   // likewise: no readahead is wanted

	mu     sync.Mutex
	sends  int // under way; a Close waits for none of them, but the last one ends it
	closed bool
}

// window is the reader's readahead, nil for none.
func (f *file) window() *Reader {
	if f.random {
		return nil
	}
	return &f.reader
}

func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	if pos >= 0 {
		f.s.call(func(v *Volume, done func()) {
			v.Read(f.n.f, f.window(), pos, int64(len(p)), ReadOptions{}, done)
		})
	}
	return f.File.ReadAt(p, pos)
}

func (f *file) Resident(pos, n int64) (bytes int64, err error) {
	if _, err := f.File.Resident(pos, n); err != nil {
		return 0, err
	}
	f.s.call(func(v *Volume, done func()) {
		bytes = v.Resident(f.n.f, pos, n)
		v.m.After(v.p.CallCost, done)
	})
	return bytes, nil
}

func (f *file) WriteV(bufs [][]byte, pos int64) (int64, error) {
	want := disk.VectorBytes(bufs)
	full := false
	f.s.Do(func(v *Volume) { full = v.FreeBytes()-v.DirtyBytes() < want })
	if full {
		return 0, disk.Fail("write", f.Path(), pos, disk.ErrFull)
	}
	n, err := f.File.WriteV(bufs, pos)
	if n > 0 {
		f.s.call(func(v *Volume, done func()) { v.Write(f.n.f, pos, n, done) })
	}
	return n, err
}

// sendBytes is how much is brought into memory before it is sent, as sendfile's pipe does it in small steps.
const sendBytes = 256 << 10

func (f *file) SendTo(dst net.Conn, pos, n int64) (sent int64, err error) {
	if err := disk.CheckRange("send", f.Path(), pos, n); err != nil {
		return 0, err
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return 0, disk.Fail("send", f.Path(), pos, disk.ErrClosed)
	}
	f.sends++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.sends--
		last := f.closed && f.sends == 0
		f.mu.Unlock()
		if last {
			f.File.Close()
		}
	}()
	for sent < n {
		part := min(n-sent, sendBytes)
		f.s.call(func(v *Volume, done func()) {
			v.Read(f.n.f, f.window(), pos+sent, part, ReadOptions{NoCopy: true}, done)
		})
		got, err := f.File.SendTo(dst, pos+sent, part)
		sent += got
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (f *file) Sync() error {
	f.s.call(func(v *Volume, done func()) { v.Sync(f.n.f, done) })
	return f.File.Sync()
}

func (f *file) Truncate(size int64) error {
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	f.s.call(func(v *Volume, done func()) { v.Truncate(f.n.f, size, done) })
	return nil
}

func (f *file) Preallocate(pos, n int64) error {
	if err := f.File.Preallocate(pos, n); err != nil {
		return err
	}
	var err error
	f.s.call(func(v *Volume, done func()) {
		v.Preallocate(f.n.f, pos, n, func(e error) {
			err = e
			done()
		})
	})
	if err != nil {
		return disk.Fail("preallocate", f.Path(), pos, disk.ErrFull)
	}
	return nil
}

func (f *file) ReleaseTail() error {
	if err := f.File.ReleaseTail(); err != nil {
		return err
	}
	f.s.call(func(v *Volume, done func()) { v.ReleaseTail(f.n.f, done) })
	return nil
}

func (f *file) WriteBehind(pos, n int64) error {
	if err := f.File.WriteBehind(pos, n); err != nil {
		return err
	}
	f.s.call(func(v *Volume, done func()) { v.WriteBehind(f.n.f, pos, n, done) })
	return nil
}

func (f *file) Advise(pos, n int64, a disk.Advice) error {
	if err := f.File.Advise(pos, n, a); err != nil {
		return err
	}
	f.s.call(func(v *Volume, done func()) {
		switch a {
		case disk.WillNeed:
			v.WillNeed(f.n.f, pos, min(n, max(0, f.n.f.Size()-pos)), done)
			return
		case disk.DontNeed:
			v.DontNeed(f.n.f, pos, n, done)
			return
		}
		f.random = a == disk.Random
		v.m.After(v.p.CallCost, done)
	})
	return nil
}

func (f *file) Close() error {
	f.mu.Lock()
	first, last := !f.closed, f.sends == 0
	f.closed = true
	f.mu.Unlock()
	if first {
		f.s.release(f.n)
	}
	if first && !last {
		return nil
	}
	return f.File.Close()
}

// release counts one handle less; the last one ends a file that was removed.
func (s *FS) release(n *node) {
	s.mu.Lock()
	n.handles--
	gone := n.removed && n.handles == 0
	s.mu.Unlock()
	if gone {
		s.call(func(v *Volume, done func()) { v.Remove(n.f, done) })
	}
}
