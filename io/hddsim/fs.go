package hddsim

import (
	"io"
	"path/filepath"
	"strings"
	"sync"

	"platter/io/clock"
	"platter/io/disk"
)

// FS is a disk.FS over another one, which takes the time that a modelled volume would: the bytes are kept by the
// inner one (memdisk as a rule), the time is the model's. A call returns when the modelled operation is done,
// by the clock. Files that the inner one had already are on the disk and not in memory.
//
// No lock is held while a caller waits.
type FS struct {
	inner disk.FS
	live  *Live
	v     *Volume

	mu    sync.Mutex
	nodes map[string]*node // by clean path
}

// node is one file as the model knows it; touched within live.
type node struct {
	f       *Inode
	handles int  // guarded by FS.mu
	removed bool // likewise
}

var _ disk.FS = (*FS)(nil)

// NewFS runs the volume's machine along the clock from now on: nobody else may touch either of them but through Do.
func NewFS(inner disk.FS, v *Volume, c clock.Clock) *FS {
	return &FS{inner: inner, live: NewLive(v.m, c), v: v, nodes: map[string]*node{}}
}

// Do runs f with the volume to itself, at the clock's time: for statistics, and to drop caches. f must not wait.
func (s *FS) Do(f func(v *Volume)) { s.live.Do(func() { f(s.v) }) }

// Name is "hddsim".
func (s *FS) Name() string { return "hddsim" }

// Caps are those of the model.
func (s *FS) Caps(path string) disk.Caps {
	c := s.inner.Caps(path)
	return disk.Caps{FileSystem: "modelled", Preallocate: true, SendFile: c.SendFile, WriteBehind: true, Advise: true,
		Resident: true, DontCache: true, BatchRead: true}
}

// Space is the smaller of the model's and the inner one's.
func (s *FS) Space(path string) (disk.Space, error) {
	sp, err := s.inner.Space(path)
	s.Do(func(v *Volume) {
		sp.TotalBytes = min(sp.TotalBytes, v.dev.SizeBytes())
		sp.FreeBytes = min(sp.FreeBytes, max(0, v.FreeBytes()-v.DirtyBytes()))
	})
	return sp, err
}

// call waits for a modelled operation.
func (s *FS) call(op func(v *Volume, done func())) {
	s.live.Call(func(done func()) { op(s.v, done) })
}

// charge is a call that touches memory alone, and perhaps changes a directory.
func (s *FS) charge(dir bool) {
	s.call(func(v *Volume, done func()) {
		if dir {
			v.TouchDir()
		}
		v.m.After(v.p.CallCost, done)
	})
}

// Open opens path in both.
func (s *FS) Open(path string, mode disk.Mode) (disk.File, error) {
	f, err := s.inner.Open(path, mode)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, err
	}
	n, made, err := s.node(filepath.Clean(path), size)
	if err != nil {
		f.Close()
		return nil, disk.Fail("open", path, -1, err)
	}
	s.charge(made)
	return &file{File: f, s: s, n: n}, nil
}

// node finds or makes the model's file, and counts one handle more.
func (s *FS) node(key string, size int64) (n *node, made bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.nodes[key]
	if n == nil {
		n, made = &node{}, true
		s.Do(func(v *Volume) {
			if size == 0 {
				n.f = v.Create()
			} else if n.f, err = v.Place(size, 0); err != nil {
				err = disk.ErrFull
			}
		})
		if err != nil {
			return nil, false, err
		}
		s.nodes[key] = n
	}
	n.handles++
	return n, made, nil
}

// Stat describes one entry.
func (s *FS) Stat(path string) (disk.Info, error) {
	s.charge(false)
	return s.inner.Stat(path)
}

// ReadDir lists a directory.
func (s *FS) ReadDir(path string) ([]disk.Info, error) {
	s.charge(false)
	return s.inner.ReadDir(path)
}

// MkdirAll creates path and its missing parents.
func (s *FS) MkdirAll(path string) error {
	s.charge(true)
	return s.inner.MkdirAll(path)
}

// Rename moves an entry, and with a directory all that is below it.
func (s *FS) Rename(from, to string) error {
	if err := s.inner.Rename(from, to); err != nil {
		return err
	}
	from, to = filepath.Clean(from), filepath.Clean(to)
	s.mu.Lock()
	old := s.nodes[to]
	if from == to {
		old = nil
	}
	moved := map[string]*node{}
	for key, n := range s.nodes {
		if rest, ok := below(key, from); ok {
			delete(s.nodes, key)
			moved[to+rest] = n
		}
	}
	for key, n := range moved {
		s.nodes[key] = n
	}
	s.mu.Unlock()
	s.charge(true)
	s.unlink(old)
	return nil
}

// below tells what of a path comes after a directory or the path itself.
func below(path, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, dir)
	return rest, ok && (rest == "" || rest[0] == filepath.Separator)
}

// Remove deletes a file or an empty directory.
func (s *FS) Remove(path string) error {
	if err := s.inner.Remove(path); err != nil {
		return err
	}
	s.forget(filepath.Clean(path))
	return nil
}

// RemoveAll deletes a tree.
func (s *FS) RemoveAll(path string) error {
	if err := s.inner.RemoveAll(path); err != nil {
		return err
	}
	s.forget(filepath.Clean(path))
	return nil
}

// forget removes the model's files at and below a path.
func (s *FS) forget(path string) {
	var gone []*node
	s.mu.Lock()
	for key, n := range s.nodes {
		if _, ok := below(key, path); ok {
			delete(s.nodes, key)
			gone = append(gone, n)
		}
	}
	s.mu.Unlock()
	s.charge(true)
	for _, n := range gone {
		s.unlink(n)
	}
}

// unlink removes a file from the volume, or leaves that to the last who has it open.
func (s *FS) unlink(n *node) {
	if n == nil {
		return
	}
	s.mu.Lock()
	n.removed = true
	open := n.handles > 0
	s.mu.Unlock()
	if !open {
		s.call(func(v *Volume, done func()) { v.Remove(n.f, done) })
	}
}

// SyncDir commits the file system's journal.
func (s *FS) SyncDir(path string) error {
	s.call(func(v *Volume, done func()) { v.SyncDir(done) })
	return s.inner.SyncDir(path)
}

// Sync syncs a set at once: one commit of the journal serves all.
func (s *FS) Sync(files []disk.File) error {
	inner := make([]disk.File, len(files))
	s.call(func(v *Volume, done func()) {
		j := joined(done)
		for i, f := range files {
			inner[i] = f
			if f, ok := f.(*file); ok {
				inner[i] = f.File
				j.left++
				v.Sync(f.n.f, j.close)
			}
		}
		j.close()
	})
	return s.inner.Sync(inner)
}

// ReadBatch submits all reads at once.
func (s *FS) ReadBatch(reads []disk.Read, cold bool) {
	s.call(func(v *Volume, done func()) {
		j := joined(done)
		for _, r := range reads {
			if f, ok := r.File.(*file); ok && r.Pos >= 0 {
				j.left++
				v.Read(f.n.f, f.window(), r.Pos, int64(len(r.Buf)), ReadOptions{DontCache: cold}, j.close)
			}
		}
		j.close()
	})
	for i := range reads {
		r := &reads[i]
		if f, ok := r.File.(*file); ok {
			r.N, r.Err = f.File.ReadAt(r.Buf, r.Pos)
		} else {
			r.N, r.Err = r.File.ReadAt(r.Buf, r.Pos)
		}
	}
}

// Lock is the inner one's.
func (s *FS) Lock(path string) (io.Closer, error) { return s.inner.Lock(path) }
