package conn

import (
	"net"
	"syscall"
)

// TryWriter sends on a connection without ever waiting for room: who has much to send to many can do it
// on one goroutine, and leave the slow ones to goroutines of their own. One goroutine at a time.
type TryWriter struct {
	raw   syscall.RawConn
	write func(fd uintptr) bool // kept, so that a try allocates nothing
	b     []byte
	n     int
	err   error
}

// NewTryWriter gives nil for a connection that does not show its socket, and where a platform has no
// such call.
func NewTryWriter(nc net.Conn) *TryWriter {
	sock, ok := nc.(syscall.Conn)
	if !ok || !canTry {
		return nil
	}
	raw, err := sock.SyscallConn()
	if err != nil {
		return nil
	}
	w := &TryWriter{raw: raw}
	w.write = func(fd uintptr) bool {
		w.n, w.err = tryWrite(fd, w.b)
		return true
	}
	return w
}

// Try sends what there is room for. Fewer bytes than len(b) without an error: there is no room now.
func (w *TryWriter) Try(b []byte) (n int, err error) {
	w.b, w.n, w.err = b, 0, nil
	err = w.raw.Write(w.write)
	w.b = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}
