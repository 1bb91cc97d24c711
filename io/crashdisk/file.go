package crashdisk

import (
	"bytes"
	"errors"
	"net"

	"platter/io/disk"
	"platter/io/memdisk"
)

// file is one handle on both.
type file struct {
	s           *FS
	path        string
	model, real disk.File
}

// Open opens path in both. A file that the model creates is created in the real one.
func (s *FS) Open(path string, m disk.Mode) (disk.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	model, err := s.model.Open(path, m)
	if err != nil {
		return nil, s.alsoMissing(path, err)
	}
	real, err := s.real.Open(s.path(path), m)
	if err != nil {
		model.Close()
		return nil, s.differs("open", path, "it fails (%v), the model does not", err)
	}
	f := &file{s, path, model, real}
	s.open[f] = true
	return f, nil
}

// alsoMissing holds it against the real backend that the model finds no such file.
func (s *FS) alsoMissing(path string, err error) error {
	if !disk.IsNotExist(err) {
		return err
	}
	if _, realErr := s.real.Stat(s.path(path)); realErr == nil {
		return s.differs("open", path, "it is there, in the model it is not")
	}
	return err
}

func (f *file) Path() string { return f.path }

func (f *file) Size() (int64, error) {
	f.s.mu.RLock()
	defer f.s.mu.RUnlock()
	want, err := f.model.Size()
	if err != nil {
		return want, err
	}
	got, err := f.real.Size()
	if err != nil || got != want {
		return want, f.s.differs("size", f.path, "%d, %v; the model has %d", got, err, want)
	}
	return got, nil
}

func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	f.s.mu.RLock()
	defer f.s.mu.RUnlock()
	n, err := f.real.ReadAt(p, pos)
	return n, f.compare(p, pos, n, err)
}

// compare holds a read against the model, and gives its outcome: the model's error, or the difference.
func (f *file) compare(p []byte, pos int64, n int, err error) error {
	want := make([]byte, len(p))
	m, modelErr := f.model.ReadAt(want, pos)
	switch {
	case errors.Is(modelErr, memdisk.ErrCrashed), errors.Is(modelErr, disk.ErrClosed) && errors.Is(err, disk.ErrClosed):
		return modelErr
	case n != m || (err == nil) != (modelErr == nil):
		return f.s.differs("read", f.path, "%d bytes at %d, %v; the model gives %d, %v", n, pos, err, m, modelErr)
	case !bytes.Equal(p[:n], want[:n]):
		return f.s.differs("read", f.path, "of %d bytes at %d the first that is another is at %d", n, pos, pos+int64(firstOther(p[:n], want)))
	}
	return err
}

func firstOther(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// ReadBatch reads by the real backend's batch.
func (s *FS) ReadBatch(reads []disk.Read, cold bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	real := make([]disk.Read, len(reads))
	for i, r := range reads {
		real[i] = r
		if f, ok := r.File.(*file); ok {
			real[i].File = f.real
		}
	}
	s.real.ReadBatch(real, cold)
	for i := range reads {
		r := &reads[i]
		r.N, r.Err = real[i].N, real[i].Err
		if f, ok := r.File.(*file); ok {
			r.Err = f.compare(r.Buf, r.Pos, r.N, r.Err)
		}
	}
}

// WriteV writes to the real backend what the model took of it.
func (f *file) WriteV(bufs [][]byte, pos int64) (n int64, err error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	n, err = f.model.WriteV(bufs, pos)
	if n == 0 || errors.Is(err, memdisk.ErrCrashed) {
		return n, err
	}
	m, realErr := f.real.WriteV(cut(bufs, n), pos)
	if realErr != nil || m != n {
		return n, f.s.differs("write", f.path, "%d bytes at %d, %v; the model took %d", m, pos, realErr, n)
	}
	return n, err
}

// cut is the first n bytes of a vector.
func cut(bufs [][]byte, n int64) (out [][]byte) {
	for _, b := range bufs {
		b = b[:min(int64(len(b)), n)]
		if n -= int64(len(b)); len(b) > 0 {
			out = append(out, b)
		}
	}
	return out
}

// SendTo is the real backend's; whoever reads the other end compares.
func (f *file) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	if f.s.Crashed() {
		return 0, disk.Fail("send", f.path, pos, memdisk.ErrCrashed)
	}
	return f.real.SendTo(dst, pos, n)
}

func (f *file) change(op string, model, real func() error) error {
	return f.s.change(op, f.path, model, real)
}

func (f *file) Sync() error { return f.change("sync", f.model.Sync, f.real.Sync) }

func (f *file) Truncate(size int64) error {
	return f.change("truncate", func() error { return f.model.Truncate(size) }, func() error { return f.real.Truncate(size) })
}

func (f *file) ReleaseTail() error {
	return f.change("release", f.model.ReleaseTail, f.real.ReleaseTail)
}

func (f *file) Preallocate(pos, n int64) error {
	return f.change("preallocate", func() error { return f.model.Preallocate(pos, n) }, func() error { return f.real.Preallocate(pos, n) })
}

func (f *file) WriteBehind(pos, n int64) error {
	return f.change("write behind", func() error { return f.model.WriteBehind(pos, n) }, func() error { return f.real.WriteBehind(pos, n) })
}

func (f *file) Advise(pos, n int64, a disk.Advice) error {
	return f.change("advise", func() error { return f.model.Advise(pos, n, a) }, func() error { return f.real.Advise(pos, n, a) })
}

// Resident is the real backend's.
func (f *file) Resident(pos, n int64) (int64, error) {
	f.s.mu.RLock()
	defer f.s.mu.RUnlock()
	if _, err := f.model.Resident(pos, n); err != nil {
		return 0, err
	}
	return f.real.Resident(pos, n)
}

func (f *file) Close() error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if err := f.model.Close(); err != nil || !f.s.open[f] {
		return err
	}
	delete(f.s.open, f)
	return f.real.Close()
}
