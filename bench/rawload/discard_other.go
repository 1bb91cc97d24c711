//go:build !linux

package rawload

import (
	"io"
	"net"
)

// Discard reads n bytes away.
func Discard(c net.Conn, n int64) error {
	_, err := io.CopyN(io.Discard, c, n)
	return err
}
