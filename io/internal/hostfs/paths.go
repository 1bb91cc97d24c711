// Package hostfs is what the backends over the host's file systems share: all that works on paths
// instead of open files. Its errors are disk's.
package hostfs

import (
	"os"
	"path/filepath"

	"platter/io/disk"
	"platter/io/gate"
)

// through makes a call that may wait for the disk that path is on: it holds a thread meanwhile.
func through(path string, side gate.Side, call func() error) error {
	g := gate.Process.For(path)
	g.Enter(side)
	defer g.Leave(side)
	return call()
}

// Paths implements the path part of disk.FS. The zero value is ready; safe for concurrent use.
type Paths struct{}

// Stat describes one entry.
func (Paths) Stat(path string) (disk.Info, error) {
	var fi os.FileInfo
	err := through(path, gate.Read, func() (err error) {
		fi, err = os.Stat(path)
		return err
	})
	if err != nil {
		return disk.Info{}, disk.Fail("stat", path, -1, err)
	}
	return info(fi), nil
}

// ReadDir lists a directory, sorted by name. Entries that vanish while it reads are left out.
func (Paths) ReadDir(path string) (infos []disk.Info, err error) {
	err = through(path, gate.Read, func() error {
		infos, err = list(path)
		return err
	})
	return infos, err
}

func list(path string) ([]disk.Info, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, disk.Fail("list", path, -1, err)
	}
	infos := make([]disk.Info, 0, len(entries))
	for _, e := range entries {
		fi, err := os.Stat(filepath.Join(path, e.Name()))
		if disk.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, disk.Fail("list", path, -1, err)
		}
		infos = append(infos, info(fi))
	}
	return infos, nil
}

func info(fi os.FileInfo) disk.Info {
	return disk.Info{Name: fi.Name(), SizeBytes: fi.Size(), IsDir: fi.IsDir(), ModTimeMs: fi.ModTime().UnixMilli()}
}

// MkdirAll creates path and its missing parents.
func (Paths) MkdirAll(path string) error {
	return disk.Fail("mkdir", path, -1, through(path, gate.Write, func() error { return os.MkdirAll(path, 0o755) }))
}

// Rename moves an entry.
func (Paths) Rename(from, to string) error {
	err := through(from, gate.Write, func() error { return os.Rename(from, to) })
	if le, ok := err.(*os.LinkError); ok {
		err = le.Err
	}
	return disk.Fail("rename", from+" -> "+to, -1, err)
}

// Remove deletes a file or an empty directory.
func (Paths) Remove(path string) error {
	return disk.Fail("remove", path, -1, through(path, gate.Write, func() error { return os.Remove(path) }))
}

// RemoveAll deletes a tree.
func (Paths) RemoveAll(path string) error {
	return disk.Fail("remove", path, -1, through(path, gate.Write, func() error { return os.RemoveAll(path) }))
}

// SyncDir makes a directory's entries durable.
func (Paths) SyncDir(path string) error {
	return disk.Fail("sync directory", path, -1, through(path, gate.Write, func() error { return syncDir(path) }))
}

// Space tells the room of the file system that holds path.
func (Paths) Space(path string) (disk.Space, error) {
	var s disk.Space
	err := through(path, gate.Read, func() (err error) {
		s, err = space(path)
		return err
	})
	return s, disk.Fail("space", path, -1, err)
}

// ExistingParent is path, or the nearest parent of it that exists.
func ExistingParent(path string) string {
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil || filepath.Dir(p) == p {
			return p
		}
	}
}
