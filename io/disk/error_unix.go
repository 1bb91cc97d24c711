//go:build unix

package disk

import (
	"errors"
	"syscall"
)

func platformKind(err error) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return ErrFull
		}
	}
	return nil
}
