package ceiling

import (
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sendRange is sendfile(2) in its barest form: as much as the socket takes, then wait for room.
func sendRange(c *net.TCPConn, f *os.File, pos, n int64) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	in := int(f.Fd())
	var failed error
	err = raw.Write(func(out uintptr) bool {
		for n > 0 {
			k, err := unix.Sendfile(int(out), in, &pos, int(min(n, 1<<20)))
			switch {
			case err == unix.EAGAIN:
				return false
			case err == unix.EINTR:
				continue
			case err == nil && k == 0:
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				failed = err
				return true
			}
			n -= int64(k)
		}
		return true
	})
	if failed != nil {
		return failed
	}
	return err
}
