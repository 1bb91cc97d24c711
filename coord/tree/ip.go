package tree

import (
	"bytes"
	"strconv"
	"strings"
)

// An ip identity is an address, and in a list it may be a net: "10.0.0.0/8". As in ZooKeeper 3.8 IPv6 does not
// count: such a list is refused.

// validIP reports whether a list may have it.
func validIP(expr string) bool {
	_, _, ok := parseNet(expr)
	return ok
}

// matchIP reports whether addr lies in the net.
func matchIP(expr, addr string) bool {
	net, bits, ok := parseNet(expr)
	if !ok {
		return false
	}
	at, ok := parseIP(addr)
	return ok && len(at) == len(net) && bytes.Equal(masked8(at, bits), masked8(net, bits))
}

func parseNet(expr string) (addr []byte, bits int, ok bool) {
	host, mask, hasMask := strings.Cut(expr, "/")
	if addr, ok = parseIP(host); !ok {
		return nil, 0, false
	}
	bits = len(addr) * 8
	if hasMask {
		n, err := strconv.Atoi(mask)
		if err != nil || n < 0 || n > bits {
			return nil, 0, false
		}
		bits = n
	}
	return addr, bits, true
}

// parseIP takes what IPAuthenticationProvider takes: four numbers of any width.
func parseIP(s string) ([]byte, bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return nil, false
	}
	out := make([]byte, 4)
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 255 {
			return nil, false
		}
		out[i] = byte(n)
	}
	return out, true
}

// masked8 is addr with all but its first bits cleared.
func masked8(addr []byte, bits int) []byte {
	out := bytes.Clone(addr)
	for i := range out {
		switch left := bits - 8*i; {
		case left <= 0:
			out[i] = 0
		case left < 8:
			out[i] &= 0xff << (8 - left)
		}
	}
	return out
}
