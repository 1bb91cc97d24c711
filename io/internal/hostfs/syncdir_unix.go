//go:build unix

package hostfs

import (
	"errors"
	"os"
	"syscall"
)

// syncDir calls fsync(2) on the directory. Some network and FUSE file systems have no such thing and
// say EINVAL; there is nothing better to call there.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
