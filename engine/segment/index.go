package segment

import (
	"encoding/binary"
	"errors"
	"io"
)

// An index is a hint on its segment: sparse, append-only, and disposable. Integers are big-endian.
//
//	.index, 8 bytes an entry                  .timeindex, 12 bytes an entry
//	pos  size  field                          pos  size  field
//	  0     4  offset - base offset             0     8  timestamp in ms
//	  4     4  position in the .log             8     4  offset - base offset
//
// An offset entry gives the last offset of the batch at its position. A time entry gives the largest
// timestamp of the segment so far and the last offset of the batch that has it first. In both all
// fields rise. Kafka preallocates index files: a tail of zeros is unused.
// Source: Kafka's OffsetIndex, TimeIndex and LogSegment.
const (
	offsetEntryBytes = 8
	timeEntryBytes   = 12
)

// OffsetEntry is one entry of an .index file: the last offset of the batch at Pos.
type OffsetEntry struct {
	Offset int64 // absolute
	Pos    int64
}

// TimeEntry is one entry of a .timeindex file: up to the batch that ends with Offset, no record is
// newer than TimestampMs.
type TimeEntry struct {
	TimestampMs int64
	Offset      int64 // absolute
}

func appendOffsetEntry(p []byte, base int64, e OffsetEntry) []byte {
	p = binary.BigEndian.AppendUint32(p, uint32(e.Offset-base))
	return binary.BigEndian.AppendUint32(p, uint32(e.Pos))
}

func appendTimeEntry(p []byte, base int64, e TimeEntry) []byte {
	p = binary.BigEndian.AppendUint64(p, uint64(e.TimestampMs))
	return binary.BigEndian.AppendUint32(p, uint32(e.Offset-base))
}

// decodeOffsetEntry: the fields are Kafka's signed integers; garbage may give negative ones.
func decodeOffsetEntry(p []byte, base int64) OffsetEntry {
	return OffsetEntry{
		Offset: base + int64(int32(binary.BigEndian.Uint32(p))),
		Pos:    int64(int32(binary.BigEndian.Uint32(p[4:]))),
	}
}

func decodeTimeEntry(p []byte, base int64) TimeEntry {
	return TimeEntry{
		TimestampMs: int64(binary.BigEndian.Uint64(p)),
		Offset:      base + int64(int32(binary.BigEndian.Uint32(p[8:]))),
	}
}

// ReadOffsetIndex calls fn for each used entry of an .index file of size bytes (a zero tail is unused).
// Entries are given as they are, in file order; fn's error stops it. A size that is no multiple of the
// entry is a *CorruptError, after the whole entries.
func ReadOffsetIndex(r ReaderAt, size, base int64, fn func(i int64, e OffsetEntry) error) error {
	return readEntries(r, size, offsetEntryBytes, func(i int64, p []byte) error {
		return fn(i, decodeOffsetEntry(p, base))
	})
}

// ReadTimeIndex is ReadOffsetIndex for a .timeindex file.
func ReadTimeIndex(r ReaderAt, size, base int64, fn func(i int64, e TimeEntry) error) error {
	return readEntries(r, size, timeEntryBytes, func(i int64, p []byte) error {
		return fn(i, decodeTimeEntry(p, base))
	})
}

func readEntries(r ReaderAt, size, width int64, fn func(i int64, p []byte) error) error {
	chunk := chunks.Get().(*[]byte)
	defer chunks.Put(chunk)
	used, err := usedEntries(r, size/width, width)
	if err != nil {
		return err
	}
	per := int64(len(*chunk)) / width
	for i := int64(0); i < used; i += per {
		p := (*chunk)[:min(per, used-i)*width]
		if err := readFull(r, p, i*width); err != nil {
			return err
		}
		for k := int64(0); k*width < int64(len(p)); k++ {
			if err := fn(i+k, p[k*width:(k+1)*width]); err != nil {
				return err
			}
		}
	}
	if size%width != 0 {
		return &CorruptError{Pos: size / width * width, Cause: ErrTorn}
	}
	return nil
}

// usedEntries finds where the zero tail starts, reading blocks from the end of the file.
func usedEntries(r ReaderAt, n, width int64) (int64, error) {
	const blockEntries = 512
	var block [blockEntries * timeEntryBytes]byte
	for n > 0 {
		from := max(0, n-blockEntries)
		p := block[:(n-from)*width]
		if err := readFull(r, p, from*width); err != nil {
			return 0, err
		}
		for ; n > from; n-- {
			if !allZero(p[(n-1-from)*width : (n-from)*width]) {
				return n, nil
			}
		}
	}
	return 0, nil
}

func allZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// readFull reads len(p) bytes at pos; a shorter file is a *CorruptError.
func readFull(r ReaderAt, p []byte, pos int64) error {
	if len(p) == 0 {
		return nil
	}
	n, err := r.ReadAt(p, pos)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return &CorruptError{Pos: pos + int64(n), Cause: ErrTorn}
	}
	return err
}
