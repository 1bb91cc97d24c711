package spindle

import (
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"platter/engine/spindle/lane"
	"platter/io/clock"
	"platter/io/disk"
)

// logSuffix is what the files are called that a Spindle cares for.
const logSuffix = ".log"

// Dir is one data directory and the device that it is on. Directories with one Device share a Spindle, shaped by the
// Params of the first.
type Dir struct {
	Path   string
	Device string
	Params Params
}

// Set is a disk.FS that cares for the .log files in some directories. Everything else passes through.
type Set struct {
	disk.FS
	clock    clock.Clock
	dirs     []dir // the longer paths first
	spindles []*Spindle
	lastFile atomic.Uint64

	mu    sync.Mutex
	files map[string]*tracked // by path: open, or known to a lane
}

type dir struct {
	prefix string
	sp     *Spindle
}

var _ disk.FS = (*Set)(nil)

// New returns the Set of some directories over fs. A lane that cannot work on a directory, since nobody tells there what is in the
// page cache, is off. Close it when all files are closed.
func New(fs disk.FS, c clock.Clock, dirs []Dir) *Set {
	s := &Set{FS: fs, clock: c, files: map[string]*tracked{}}
	byDevice := map[string]*Spindle{}
	for _, d := range dirs {
		sp := byDevice[d.Device]
		if sp == nil {
			p := d.Params
			p.Cold = p.Cold && fs.Caps(d.Path).Resident
			sp = newSpindle(d.Device, p, fs, c)
			byDevice[d.Device] = sp
			s.spindles = append(s.spindles, sp)
		}
		s.dirs = append(s.dirs, dir{filepath.Clean(d.Path) + string(filepath.Separator), sp})
	}
	return s
}

// Close ends the lanes: readers go to the disk by themselves from now on.
func (s *Set) Close() {
	for _, sp := range s.spindles {
		sp.close()
	}
}

// Stats tells of each device.
func (s *Set) Stats() []Stats {
	st := make([]Stats, len(s.spindles))
	active := s.active()
	for i, sp := range s.spindles {
		st[i] = sp.Stats()
		st[i].ActiveFiles = active[sp]
	}
	return st
}

// of is the spindle that path is on; nil: none of ours.
func (s *Set) of(path string) *Spindle {
	var best dir
	for _, d := range s.dirs {
		if strings.HasPrefix(path, d.prefix) && len(d.prefix) > len(best.prefix) {
			best = d
		}
	}
	return best.sp
}

// Open opens path.
func (s *Set) Open(path string, m disk.Mode) (disk.File, error) {
	sp := s.of(path)
	if sp == nil || !strings.HasSuffix(path, logSuffix) {
		return s.FS.Open(path, m)
	}
	f, err := s.FS.Open(path, m)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.files[path]
	if t == nil {
		t = &tracked{id: lane.FileID(s.lastFile.Add(1)), sp: sp, set: s, path: path}
		s.files[path] = t
	}
	t.opens++
	return &file{File: f, t: t, set: s}, nil
}

// closed is the end of one open file. What was written lately is remembered while the file is open only: whoever opens it
// again asks the kernel.
func (s *Set) closed(t *tracked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.opens--
	s.tidy(t)
}

// release is the end of what a lane knew of a file.
func (s *Set) release(t *tracked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tidy(t)
}

// tidy drops a file that is neither open nor known to a lane; mu is held.
func (s *Set) tidy(t *tracked) {
	if path := t.name(); t.opens == 0 && !t.known.Load() && s.files[path] == t {
		delete(s.files, path)
	}
}

// moved follows a rename, or (to empty) a removal: whoever reads the file through the lane is let go.
func (s *Set) moved(from, to string) {
	s.mu.Lock()
	over := s.files[to]
	delete(s.files, to)
	moved := s.move(from, to)
	s.mu.Unlock()
	for _, x := range []*tracked{moved, over} {
		if x != nil {
			x.sp.forget(x, 0)
		}
	}
}

// move changes a file's name; mu is held.
func (s *Set) move(from, to string) *tracked {
	t := s.files[from]
	if t == nil {
		return nil
	}
	delete(s.files, from)
	t.rename(to)
	if to != "" {
		s.files[to] = t
	}
	return t
}

// movedDir follows a directory's rename, or (to empty) its removal.
func (s *Set) movedDir(from, to string) {
	var moved []*tracked
	s.mu.Lock()
	for path := range s.files {
		rest, in := strings.CutPrefix(path, from+string(filepath.Separator))
		if !in {
			continue
		}
		name := ""
		if to != "" {
			name = filepath.Join(to, rest)
		}
		moved = append(moved, s.move(path, name))
	}
	s.mu.Unlock()
	for _, t := range moved {
		t.sp.forget(t, 0)
	}
}

// Rename moves an entry.
func (s *Set) Rename(from, to string) error {
	err := s.FS.Rename(from, to)
	if err != nil || s.of(from) == nil {
		return err
	}
	s.moved(from, to)
	if info, err := s.FS.Stat(to); err == nil && info.IsDir {
		s.movedDir(from, to)
	}
	return nil
}

// Remove deletes a file or an empty directory.
func (s *Set) Remove(path string) error {
	err := s.FS.Remove(path)
	if err == nil {
		s.moved(path, "")
	}
	return err
}

// RemoveAll deletes a tree.
func (s *Set) RemoveAll(path string) error {
	err := s.FS.RemoveAll(path)
	if err == nil && s.of(path) != nil {
		s.moved(path, "")
		s.movedDir(path, "")
	}
	return err
}

// Sync makes all files durable.
func (s *Set) Sync(files []disk.File) error {
	inner := make([]disk.File, len(files))
	for i, f := range files {
		inner[i] = bare(f)
	}
	return s.FS.Sync(inner)
}

// ReadBatch does all reads, past the lane.
func (s *Set) ReadBatch(reads []disk.Read, cold bool) {
	inner := make([]disk.Read, len(reads))
	for i, r := range reads {
		inner[i] = r
		inner[i].File = bare(r.File)
	}
	s.FS.ReadBatch(inner, cold)
	for i, r := range inner {
		reads[i].N, reads[i].Err = r.N, r.Err
	}
}

// bare is the file of the FS below.
func bare(f disk.File) disk.File {
	switch w := f.(type) {
	case *file:
		return w.File
	case *reading:
		return w.File
	}
	return f
}
