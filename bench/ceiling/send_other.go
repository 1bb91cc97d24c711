//go:build !linux

package ceiling

import (
	"io"
	"net"
	"os"
)

// sendRange copies in the way that Go's standard library finds best for this system.
func sendRange(c *net.TCPConn, f *os.File, pos, n int64) error {
	if _, err := f.Seek(pos, io.SeekStart); err != nil {
		return err
	}
	_, err := c.ReadFrom(&io.LimitedReader{R: f, N: n})
	return err
}
