package spindlebench

import "encoding/binary"

// answers counts the bytes of a stream of answers, without the four bytes of length before each.
type answers struct {
	head [4]byte
	have int
	left int64 // of the answer under way
	got  int64
}

// take goes on with the stream, and returns the bytes of answers so far.
func (a *answers) take(p []byte) int64 {
	for len(p) > 0 {
		if a.left == 0 {
			n := copy(a.head[a.have:], p)
			a.have += n
			p = p[n:]
			if a.have == len(a.head) {
				a.have, a.left = 0, int64(binary.BigEndian.Uint32(a.head[:]))
			}
			continue
		}
		n := min(a.left, int64(len(p)))
		a.left -= n
		a.got += n
		p = p[n:]
	}
	return a.got
}
