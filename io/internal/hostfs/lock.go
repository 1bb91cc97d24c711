package hostfs

import (
	"io"
	"os"

	"platter/io/disk"
)

// Lock takes an exclusive lock on path, creating the file. It excludes other handles in this process
// too, and dies with the process.
func (Paths) Lock(path string) (io.Closer, error) {
	defer Enter()()
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
