//go:build unix

package conn

import (
	"errors"

	"golang.org/x/sys/unix"
)

const canTry = true

func tryWrite(fd uintptr, b []byte) (int, error) {
	for {
		n, err := unix.Write(int(fd), b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return 0, nil
		case err != nil:
			return 0, err
		}
		return n, nil
	}
}
