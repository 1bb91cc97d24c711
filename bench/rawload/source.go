package rawload

import (
	"encoding/binary"
	"net"
)

// FetchBare reads wantBytes from ceiling's source in answers of maxBytes, from a file of fileBytes that
// is read round and round, and throws them away as Fetch does.
func FetchBare(addr string, maxBytes int32, wantBytes, fileBytes int64) (int64, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var got int64
	var req [16]byte
	for got < wantBytes {
		pos := got % fileBytes
		n := min(int64(maxBytes), fileBytes-pos)
		binary.BigEndian.PutUint64(req[:], uint64(pos))
		binary.BigEndian.PutUint64(req[8:], uint64(n))
		if _, err := c.Write(req[:]); err != nil {
			return got, err
		}
		if err := Discard(c, n); err != nil {
			return got, err
		}
		got += n
	}
	return got, nil
}
