package frame

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// cork holds back, or lets go, what does not fill a segment (TCP_CORK). ok is false for connections without
// a TCP socket, which is no error: they just do without.
func cork(c net.Conn, on bool) (ok bool) {
	sock, is := c.(syscall.Conn)
	if !is {
		return false
	}
	raw, err := sock.SyscallConn()
	if err != nil {
		return false
	}
	value := 0
	if on {
		value = 1
	}
	_ = raw.Control(func(fd uintptr) {
		ok = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, value) == nil
	})
	return ok
}
