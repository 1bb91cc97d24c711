package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// ErrCorrupt: a checkpoint file is not what its format says. The text has line and cause.
var ErrCorrupt = errors.New("corrupt checkpoint file")

// linesVersion is the version in the first line of Kafka's line checkpoints.
const linesVersion = 0

// ParseLines reads Kafka's line checkpoint: a line with the version (0), a line with the number of entries, then
// one line an entry. fn gets each entry's line; its error is wrapped with the line's number. Every
// error is ErrCorrupt. As with Kafka, a last line without its newline counts, and an empty file, which is what
// Kafka begins with, has no entries.
func ParseLines(p []byte, fn func(line []byte) error) error {
	version, rest, ok := cutLine(p)
	if !ok {
		return nil
	}
	if v, err := parseInt(version, 32); err != nil || v != linesVersion {
		return fmt.Errorf("%w: line 1: version %s, want %d", ErrCorrupt, quote(version), linesVersion)
	}
	count, rest, ok := cutLine(rest)
	want, err := parseInt(count, 32)
	if !ok || err != nil || want < 0 {
		return fmt.Errorf("%w: line 2: entry count %s", ErrCorrupt, quote(count))
	}
	var n int64
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = cutLine(rest)
		if n++; n > want {
			return fmt.Errorf("%w: line %d: more than the %d entries that line 2 announces", ErrCorrupt, n+2, want)
		}
		if err := fn(line); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrCorrupt, n+2, err)
		}
	}
	if n != want {
		return fmt.Errorf("%w: %d entries, line 2 announces %d", ErrCorrupt, n, want)
	}
	return nil
}

// AppendLinesHeader starts a line checkpoint of count entries; the caller appends the lines.
func AppendLinesHeader(p []byte, count int) []byte {
	p = append(strconv.AppendInt(p, linesVersion, 10), '\n')
	return append(strconv.AppendInt(p, int64(count), 10), '\n')
}

// ParseInts splits line at blanks into exactly len(dst) integers of the given bit sizes.
func ParseInts(line []byte, dst []int64, bits ...int) error {
	fields := bytes.Fields(line)
	if len(fields) != len(dst) {
		return fmt.Errorf("%d fields in %s, want %d", len(fields), quote(line), len(dst))
	}
	for i, f := range fields {
		v, err := parseInt(f, bits[i])
		if err != nil {
			return fmt.Errorf("field %d, %s, is no %d-bit integer", i+1, quote(f), bits[i])
		}
		dst[i] = v
	}
	return nil
}

func cutLine(p []byte) (line, rest []byte, ok bool) {
	if len(p) == 0 {
		return nil, nil, false
	}
	line, rest, _ = bytes.Cut(p, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), rest, true
}

func parseInt(p []byte, bits int) (int64, error) {
	if len(p) > 20 { // longer than any 64-bit integer
		return 0, strconv.ErrRange
	}
	return strconv.ParseInt(string(p), 10, bits)
}

// quote shows hostile bytes in an error, cut to a readable length.
func quote(p []byte) string {
	const most = 64
	if len(p) > most {
		return strconv.Quote(string(p[:most])) + "…"
	}
	return strconv.Quote(string(p))
}
