// Package atomicfile replaces small files in one step: after a crash at any point the file has the old
// content or the new, whole.
//
// The new content goes to path+".tmp", is synced, renamed over path, and the directory is synced. A
// left-over .tmp file is overwritten by the next Write and means nothing. One writer a path at a time.
package atomicfile

import (
	"path/filepath"

	"platter/io/disk"
)

// Suffix is what the unfinished file's name ends with, as in Kafka's checkpoint files.
const Suffix = ".tmp"

// Write replaces the content of path. When it fails, path has its old content (or, if only the last
// sync failed, either).
func Write(fs disk.FS, path string, content []byte) error {
	tmp := path + Suffix
	err := writeSynced(fs, tmp, content)
	if err == nil {
		err = fs.Rename(tmp, path)
	}
	if err != nil {
		fs.Remove(tmp) // a courtesy; the first error is the one that counts
		return err
	}
	return fs.SyncDir(filepath.Dir(path))
}

func writeSynced(fs disk.FS, path string, content []byte) error {
	f, err := fs.Open(path, disk.Create)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return err
	}
	if len(content) > 0 {
		if _, err := f.WriteV([][]byte{content}, 0); err != nil {
			f.Close()
			return err
		}
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
