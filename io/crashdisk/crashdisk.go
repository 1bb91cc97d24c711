// Package crashdisk is a real backend with a crash: every operation is done twice, on the real backend in a directory
// of its own and on io/memdisk, which knows what a crash may leave.
//
// What is read comes from the real backend and is compared with the model, so each run of a crash simulation is a
// differential test of the backend besides. A power cut writes the model's crash image into a fresh directory, through
// the real backend, and all goes on there; so does the death of the process at a crash point. At a mere Kill the real
// directory stays as it is, and is compared with the model in whole.
//
// A difference is an *Error of kind ErrDiffers, returned by the operation that saw it and kept for Err: it
// is the backend's bug, not the disk's fault, and nothing more is to be believed after it.
//
// Safe for concurrent use; operations that change something run one at a time. A hook (SetHook) runs under that lock, and must
// not use the disk. The same operations in the same order give the same crashes, as memdisk's do.
package crashdisk

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"platter/io/disk"
	"platter/io/memdisk"
)

// ErrDiffers is the kind of every disagreement between the real backend and the model.
var ErrDiffers = errors.New("the backend and the model differ")

// Disk is a disk that can crash: what simulations need. *memdisk.FS is one, *FS is the other.
type Disk interface {
	disk.FS
	// CrashAt sets the crash point, as memdisk's does.
	CrashAt(n int64, seed uint64)
	// Crashed reports whether it was reached.
	Crashed() bool
	// Crash is a power cut, Kill the death of the process alone.
	Crash(seed uint64)
	Kill()
	// Count is the number of operations so far, SetHook is called before each.
	Count() int64
	SetHook(hook func(memdisk.Op) error)
	// SetCapacity limits the disk, UsedBytes is what it holds.
	SetCapacity(bytes int64)
	UsedBytes() int64
}

var (
	_ Disk = (*memdisk.FS)(nil)
	_ Disk = (*FS)(nil)
)

// FS is a real backend and its model. Paths are the model's: below the root of the real directory.
type FS struct {
	real  disk.FS
	model *memdisk.FS
	base  string // the real directory; each life after a crash has one in it

	mu     sync.RWMutex // shared by what reads, so that it compares like with like
	life   int
	open   map[*file]bool
	locks  map[*lock]bool
	differ atomic.Pointer[error]
}

// New pairs a real backend in an empty directory with an empty model.
func New(real disk.FS, base string, model *memdisk.FS) (*FS, error) {
	s := &FS{real: real, model: model, base: base, open: map[*file]bool{}, locks: map[*lock]bool{}}
	return s, real.MkdirAll(s.path("/"))
}

// path is where the real backend keeps a path of the model in this life.
func (s *FS) path(p string) string {
	return filepath.Join(s.base, fmt.Sprint("life", s.life), filepath.Clean("/"+p))
}

// Err is the first difference that was seen, nil while there is none.
func (s *FS) Err() error {
	if e := s.differ.Load(); e != nil {
		return *e
	}
	return nil
}

// differs makes and keeps the error of a difference.
func (s *FS) differs(op, path, format string, args ...any) error {
	err := disk.Fail(op, path, -1, fmt.Errorf("%w: %s: %s", ErrDiffers, s.real.Name(), fmt.Sprintf(format, args...)))
	s.differ.CompareAndSwap(nil, &err)
	return err
}

// refused is an error of the real backend where the model has none: a difference, unless the backend has no
// such operation.
func (s *FS) refused(op, path string, err error) error {
	if err == nil || errors.Is(err, disk.ErrUnsupported) {
		return err
	}
	return s.differs(op, path, "it fails (%v), the model does not", err)
}

// change does an operation that changes something, first on the model.
func (s *FS) change(op, path string, model, real func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := model(); err != nil {
		return err
	}
	return s.refused(op, path, real())
}

// Name is the real backend's.
func (s *FS) Name() string { return s.real.Name() }

// Caps are the real backend's.
func (s *FS) Caps(string) disk.Caps {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.real.Caps(s.path("/"))
}

// Space is the model's: the simulation sets it.
func (s *FS) Space(path string) (disk.Space, error) { return s.model.Space(path) }

// CrashAt sets the model's crash point.
func (s *FS) CrashAt(n int64, seed uint64) { s.model.CrashAt(n, seed) }

// Crashed reports whether the crash point was reached.
func (s *FS) Crashed() bool { return s.model.Crashed() }

// Count is the model's number of operations so far.
func (s *FS) Count() int64 { return s.model.Count() }

// SetHook sets the model's hook: what it refuses is not done on the real backend either.
func (s *FS) SetHook(hook func(memdisk.Op) error) { s.model.SetHook(hook) }

// SetCapacity limits the model: what has no room there is not written to the real backend.
func (s *FS) SetCapacity(bytes int64) { s.model.SetCapacity(bytes) }

// UsedBytes is what the model holds.
func (s *FS) UsedBytes() int64 { return s.model.UsedBytes() }

// Crash cuts the power: the model draws what is left, and the real backend is given that in a fresh directory.
func (s *FS) Crash(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Crash(seed)
	s.release()
	s.renew()
}

// Kill is the death of the process. The real directory stays, unless the crash point left the model with half an
// operation.
func (s *FS) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	dead := s.model.Crashed()
	s.model.Kill()
	s.release()
	if dead {
		s.renew()
	} else {
		s.compareTree("/")
	}
}

// release closes what the dead process had open.
func (s *FS) release() {
	for f := range s.open {
		f.real.Close()
	}
	for l := range s.locks {
		l.real.Close()
	}
	clear(s.open)
	clear(s.locks)
}

// renew copies the model into a fresh directory.
func (s *FS) renew() {
	old := s.path("/")
	s.life++
	if err := errors.Join(s.real.MkdirAll(s.path("/")), s.copyTree("/")); err != nil {
		s.differs("copy", "/", "the crash image cannot be written: %v", err)
	}
	if err := s.real.RemoveAll(old); err != nil {
		s.differs("copy", "/", "%v", err)
	}
}

// imageBytesMax bounds one file of a crash image.
const imageBytesMax = 1 << 30

func (s *FS) copyTree(dir string) error {
	infos, err := s.model.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, in := range infos {
		p := filepath.Join(dir, in.Name)
		if in.IsDir {
			err = errors.Join(s.real.MkdirAll(s.path(p)), s.copyTree(p))
		} else {
			err = s.copyFile(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *FS) copyFile(p string) error {
	content, err := disk.ReadFile(s.model, p, imageBytesMax)
	if err != nil {
		return err
	}
	f, err := s.real.Open(s.path(p), disk.CreateNew)
	if err != nil {
		return err
	}
	_, err = f.WriteV([][]byte{content}, 0)
	return errors.Join(err, f.Close())
}

// compareTree holds everything below a directory against the model.
func (s *FS) compareTree(dir string) {
	infos, err := s.readDir(dir)
	if err != nil {
		s.differs("readdir", dir, "%v", err)
		return
	}
	for _, in := range infos {
		p := filepath.Join(dir, in.Name)
		if in.IsDir {
			s.compareTree(p)
			continue
		}
		want, modelErr := disk.ReadFile(s.model, p, imageBytesMax)
		got, realErr := disk.ReadFile(s.real, s.path(p), imageBytesMax)
		if modelErr != nil || realErr != nil || !slices.Equal(got, want) {
			s.differs("read", p, "after a kill it has %d bytes (%v), the model %d (%v), and they are not the same", len(got), realErr, len(want), modelErr)
		}
	}
}

// Stat describes one entry, with the model's time of change.
func (s *FS) Stat(path string) (disk.Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	want, err := s.model.Stat(path)
	if errors.Is(err, memdisk.ErrCrashed) {
		return want, err
	}
	got, realErr := s.real.Stat(s.path(path))
	if disk.IsNotExist(err) != disk.IsNotExist(realErr) || err == nil && !alike(got, want) {
		return want, s.differs("stat", path, "%+v, %v; the model has %+v, %v", got, realErr, want, err)
	}
	return want, err
}

// alike compares all but the times, and the sizes of directories.
func alike(a, b disk.Info) bool {
	return a.IsDir == b.IsDir && (a.IsDir || a.SizeBytes == b.SizeBytes)
}

// ReadDir lists a directory.
func (s *FS) ReadDir(path string) ([]disk.Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.readDir(path)
}

func (s *FS) readDir(path string) ([]disk.Info, error) {
	want, err := s.model.ReadDir(path)
	if errors.Is(err, memdisk.ErrCrashed) {
		return nil, err
	}
	got, realErr := s.real.ReadDir(s.path(path))
	same := slices.EqualFunc(got, want, func(a, b disk.Info) bool { return a.Name == b.Name && alike(a, b) })
	if (err == nil) != (realErr == nil) || err == nil && !same {
		return want, s.differs("readdir", path, "%+v, %v; the model has %+v, %v", got, realErr, want, err)
	}
	return want, err
}

// MkdirAll creates path and its missing parents.
func (s *FS) MkdirAll(path string) error {
	return s.change("mkdir", path, func() error { return s.model.MkdirAll(path) }, func() error { return s.real.MkdirAll(s.path(path)) })
}

// Rename moves an entry.
func (s *FS) Rename(from, to string) error {
	return s.change("rename", from, func() error { return s.model.Rename(from, to) },
		func() error { return s.real.Rename(s.path(from), s.path(to)) })
}

// Remove deletes a file or an empty directory.
func (s *FS) Remove(path string) error {
	return s.change("remove", path, func() error { return s.model.Remove(path) }, func() error { return s.real.Remove(s.path(path)) })
}

// RemoveAll deletes a tree.
func (s *FS) RemoveAll(path string) error {
	return s.change("removeall", path, func() error { return s.model.RemoveAll(path) }, func() error { return s.real.RemoveAll(s.path(path)) })
}

// SyncDir makes the entries of a directory durable.
func (s *FS) SyncDir(path string) error {
	return s.change("syncdir", path, func() error { return s.model.SyncDir(path) }, func() error { return s.real.SyncDir(s.path(path)) })
}

// Sync makes a set of files durable.
func (s *FS) Sync(files []disk.File) error {
	model, real := make([]disk.File, len(files)), make([]disk.File, len(files))
	for i, f := range files {
		model[i], real[i] = f, f
		if f, ok := f.(*file); ok {
			model[i], real[i] = f.model, f.real
		}
	}
	return s.change("sync", "a set", func() error { return s.model.Sync(model) }, func() error { return s.real.Sync(real) })
}

// Lock takes a lock in both.
func (s *FS) Lock(path string) (io.Closer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.model.Lock(path)
	if err != nil {
		return nil, err
	}
	r, err := s.real.Lock(s.path(path))
	if err != nil {
		m.Close()
		return nil, s.refused("lock", path, err)
	}
	l := &lock{s, m, r}
	s.locks[l] = true
	return l, nil
}

type lock struct {
	s           *FS
	model, real io.Closer
}

func (l *lock) Close() error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if err := l.model.Close(); err != nil || !l.s.locks[l] {
		return err
	}
	delete(l.s.locks, l)
	return l.real.Close()
}
