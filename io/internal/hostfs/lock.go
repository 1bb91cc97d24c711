package hostfs

import (
	"io"
	"os"

	"platter/io/disk"
	"platter/io/gate"
)

// Lock takes an exclusive lock on path, creating the file. It excludes other handles in this process
// too, and dies with the process.
func (Paths) Lock(path string) (lock io.Closer, err error) {
	err = through(path, gate.Write, func() error {
		lock, err = openLocked(path)
		return err
	})
	return lock, err
}

func openLocked(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, disk.Fail("lock", path, -1, err)
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, disk.Fail("lock", path, -1, err)
	}
	return f, nil
}
