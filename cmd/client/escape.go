package client

import (
	"fmt"
	"strconv"
	"strings"
)

// Unescape turns \n, \r, \t, \0, \\ and \xHH into the bytes they stand for, as kcat does in its delimiters
// and formats.
func Unescape(s string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", fmt.Errorf("%q ends in a single backslash", s)
		}
		switch s[i] {
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case '0':
			out.WriteByte(0)
		case '\\':
			out.WriteByte('\\')
		case 'x':
			if i+2 >= len(s) {
				return "", fmt.Errorf("%q: \\x needs two hexadecimal digits", s)
			}
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return "", fmt.Errorf("%q: \\x needs two hexadecimal digits", s)
			}
			out.WriteByte(byte(n))
			i += 2
		default:
			return "", fmt.Errorf("%q: \\%c is no escape (\\n \\r \\t \\0 \\\\ \\xHH are)", s, s[i])
		}
	}
	return out.String(), nil
}
