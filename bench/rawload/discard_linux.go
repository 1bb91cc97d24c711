package rawload

import (
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// Discard drops n bytes from the socket's queue without copying them (MSG_TRUNC, tcp(7)).
func Discard(c net.Conn, n int64) error {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		_, err := io.CopyN(io.Discard, c, n)
		return err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20) // only its length matters to the kernel
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for n > 0 {
			k, _, err := unix.Recvfrom(int(fd), buf[:min(n, int64(len(buf)))], unix.MSG_TRUNC|unix.MSG_DONTWAIT)
			if err == unix.EAGAIN {
				return false
			}
			if err == unix.EINTR {
				continue
			}
			if err == nil && k == 0 {
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
