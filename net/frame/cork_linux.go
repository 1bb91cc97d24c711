package frame

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// corkSegmentMax is the largest segment for which a socket is corked; jumbo frames are below. Loopback's are
// of 64 KiB, more than half of a socket's send buffer: to hold back most of one starves the reader, and took
// a third of the bytes a CPU second from answers of 1 MiB.
const corkSegmentMax = 16 << 10

// cork holds back, or lets go, what does not fill a segment (TCP_CORK). ok is false for connections without
// a TCP socket and for those with large segments, which is no error: they just do without.
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
		if on {
			if n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG); err != nil || n > corkSegmentMax {
				return
			}
		}
		ok = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, value) == nil
	})
	return ok
}
