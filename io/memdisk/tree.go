package memdisk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"platter/io/disk"
)

var (
	errDirectory    = errors.New("is a directory")
	errNotDirectory = errors.New("not a directory")
	errNotEmpty     = errors.New("directory is not empty")
	errIntoItself   = errors.New("a directory cannot move into itself")
)

// node is a file or a directory.
type node struct {
	id       uint64
	modMs    int64
	children map[string]*node // a directory's entries; nil for a file
	durable  map[string]*node // those a power cut leaves
	content  *content         // nil for a directory
	reserved map[int64]bool   // pages that Preallocate took
	handles  int
	unlinked bool
}

func (n *node) isDir() bool { return n.children != nil }

// pageCount is how many pages of the capacity the file holds.
func (n *node) pageCount() int { return len(n.content.now.pages) + len(n.reserved) }

func (m *FS) newNode(dir bool) *node {
	m.nextID++
	n := &node{id: m.nextID, modMs: m.clock.NowMs()}
	if dir {
		n.children, n.durable = map[string]*node{}, map[string]*node{}
	} else {
		n.content, n.reserved = newContent(), map[int64]bool{}
	}
	return n
}

// drop gives the room of a file back once nothing leads to it.
func (m *FS) drop(n *node) {
	if n.unlinked && n.handles == 0 && !n.isDir() {
		m.used -= int64(n.pageCount()) * pageBytes
	}
}

func split(path string) []string {
	return strings.FieldsFunc(filepath.ToSlash(filepath.Clean(path)), func(r rune) bool { return r == '/' })
}

// walk finds the node of a path, nil when there is none.
func (m *FS) walk(path string) *node {
	n := m.root
	for _, name := range split(path) {
		if name != "." {
			n = n.children[name] // a file's children are nil, and so is what comes of them
		}
		if n == nil {
			return nil
		}
	}
	return n
}

// parent finds the directory of a path and the name in it.
func (m *FS) parent(path string) (dir *node, name string, err error) {
	dir = m.walk(filepath.Dir(filepath.Clean(path)))
	name = filepath.Base(path)
	switch {
	case dir == nil:
		return nil, "", fs.ErrNotExist
	case !dir.isDir():
		return nil, "", errNotDirectory
	case dir == m.walk(path):
		return nil, "", errDirectory // the root, or "."
	}
	return dir, name, nil
}

// link, unlink and move change the tree and note the change as not durable.

func (m *FS) link(dir *node, name string, n *node) {
	dir.children[name] = n
	m.changed(&change{node: n, to: place{dir, name}})
}

func (m *FS) unlink(dir *node, name string) {
	n := dir.children[name]
	delete(dir.children, name)
	m.changed(&change{node: n, from: place{dir, name}})
	n.unlinked = true
	m.drop(n)
}

func (m *FS) move(from, to place) {
	n := from.dir.children[from.name]
	old := to.dir.children[to.name]
	if old != nil {
		old.unlinked = true
		m.drop(old)
	}
	delete(from.dir.children, from.name)
	to.dir.children[to.name] = n
	m.changed(&change{node: n, replaced: old, from: from, to: to})
}

func (m *FS) changed(c *change) {
	now := m.clock.NowMs()
	for _, d := range []*node{c.from.dir, c.to.dir} {
		if d != nil {
			d.modMs = now
		}
	}
	m.pending = append(m.pending, c)
}

// Stat describes one entry.
func (m *FS) Stat(path string) (disk.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookUp(path)
	if err != nil {
		return disk.Info{}, disk.Fail("stat", path, -1, err)
	}
	return n.info(filepath.Base(path)), nil
}

func (m *FS) lookUp(path string) (*node, error) {
	if m.dead {
		return nil, ErrCrashed
	}
	if n := m.walk(path); n != nil {
		return n, nil
	}
	return nil, fs.ErrNotExist
}

func (n *node) info(name string) disk.Info {
	i := disk.Info{Name: name, IsDir: n.isDir(), ModTimeMs: n.modMs}
	if !i.IsDir {
		i.SizeBytes = n.content.now.size
	}
	return i
}

// ReadDir lists a directory, sorted by name.
func (m *FS) ReadDir(path string) ([]disk.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookUp(path)
	if err == nil && !n.isDir() {
		err = errNotDirectory
	}
	if err != nil {
		return nil, disk.Fail("list", path, -1, err)
	}
	infos := make([]disk.Info, 0, len(n.children))
	for name, child := range n.children {
		infos = append(infos, child.info(name))
	}
	slices.SortFunc(infos, func(a, b disk.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

// MkdirAll creates path and its missing parents, an operation each.
func (m *FS) MkdirAll(path string) error {
	path = filepath.Clean(path)
	m.mu.Lock()
	n, err := m.lookUp(path)
	m.mu.Unlock()
	switch {
	case err == nil && n.isDir():
		return nil
	case err == nil:
		return disk.Fail("mkdir", path, -1, errNotDirectory)
	case !errors.Is(err, fs.ErrNotExist):
		return disk.Fail("mkdir", path, -1, err)
	}
	if err := m.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return m.op(Op{Kind: "mkdir", Path: path}, func() error {
		dir, name, err := m.parent(path)
		if err != nil {
			return err
		}
		if dir.children[name] == nil {
			m.link(dir, name, m.newNode(true))
		}
		return nil
	})
}

// Rename moves an entry, replacing a file, or an empty directory by a directory.
func (m *FS) Rename(from, to string) error {
	return m.op(Op{Kind: "rename", Path: from, To: to}, func() error {
		dir, name, err := m.parent(from)
		if err != nil {
			return err
		}
		n := dir.children[name]
		if n == nil {
			return fs.ErrNotExist
		}
		toDir, toName, err := m.parent(to)
		if err != nil {
			return err
		}
		old := toDir.children[toName]
		switch {
		case old == n:
			return nil
		case n.isDir() && n.contains(toDir):
			return errIntoItself
		case old == nil:
		case old.isDir() && !n.isDir():
			return errDirectory
		case !old.isDir() && n.isDir():
			return errNotDirectory
		case len(old.children) > 0:
			return errNotEmpty
		}
		m.move(place{dir, name}, place{toDir, toName})
		return nil
	})
}

func (n *node) contains(d *node) bool {
	if n == d {
		return true
	}
	for _, child := range n.children {
		if child.contains(d) {
			return true
		}
	}
	return false
}

// Remove deletes a file or an empty directory.
func (m *FS) Remove(path string) error {
	return m.op(Op{Kind: "remove", Path: path}, func() error {
		dir, name, err := m.parent(path)
		if err != nil {
			return err
		}
		switch n := dir.children[name]; {
		case n == nil:
			return fs.ErrNotExist
		case len(n.children) > 0:
			return errNotEmpty
		}
		m.unlink(dir, name)
		return nil
	})
}

// RemoveAll deletes a tree, an operation for each entry; a missing path is no error.
func (m *FS) RemoveAll(path string) error {
	infos, err := m.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, ErrCrashed) {
		return err
	}
	for _, i := range infos {
		if err := m.RemoveAll(filepath.Join(path, i.Name)); err != nil {
			return err
		}
	}
	if err := m.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
