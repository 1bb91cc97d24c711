//go:build windows

package disk

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

func platformKind(err error) error {
	for _, full := range []syscall.Errno{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL} {
		if errors.Is(err, full) {
			return ErrFull
		}
	}
	if errors.Is(err, windows.ERROR_INVALID_HANDLE) {
		return ErrClosed
	}
	return nil
}
