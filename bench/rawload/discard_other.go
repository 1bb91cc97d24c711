//go:build !linux

package rawload

import (
	"io"
	"net"
)

// discard reads n bytes away.
func discard(c net.Conn, n int64) error {
	_, err := io.CopyN(io.Discard, c, n)
	return err
}
