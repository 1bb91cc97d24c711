package rawload

import (
	"encoding/binary"
	"io"
	"net"
	"os"
)

// copyBytes is how much Copy reads and writes at a time.
const copyBytes = 1 << 20

// Copy writes the first n bytes of ceiling's source to f: what a follower does that checks nothing and waits for nothing.
func Copy(f *os.File, addr string, n int64) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	var req [16]byte
	binary.BigEndian.PutUint64(req[8:], uint64(n))
	if _, err := c.Write(req[:]); err != nil {
		return err
	}
	buf := make([]byte, copyBytes)
	for n > 0 {
		p := buf[:min(n, copyBytes)]
		if _, err := io.ReadFull(c, p); err != nil {
			return err
		}
		if _, err := f.Write(p); err != nil {
			return err
		}
		n -= int64(len(p))
	}
	return nil
}
