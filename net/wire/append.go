package wire

import (
	"encoding/binary"
	"math/bits"
)

// Encoding appends; flex says whether lengths are compact.

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }
func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }
func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

func appendUvarint(dst []byte, u uint32) []byte {
	return binary.AppendUvarint(dst, uint64(u))
}

func uvarintBytes(u uint32) int { return (bits.Len32(u|1) + 6) / 7 }

// appendLength is the length of bytes or an array.
func appendLength(dst []byte, n int, flex bool) []byte {
	if flex {
		return appendUvarint(dst, uint32(n)+1)
	}
	return appendInt32(dst, int32(n))
}

func appendString(dst []byte, s string, flex bool) []byte {
	if flex {
		dst = appendUvarint(dst, uint32(len(s))+1)
	} else {
		dst = appendInt16(dst, int16(len(s)))
	}
	return append(dst, s...)
}

// appendStringOrNull writes null for an empty string.
func appendStringOrNull(dst []byte, s string, flex bool) []byte {
	if s != "" {
		return appendString(dst, s, flex)
	}
	if flex {
		return append(dst, 0)
	}
	return appendInt16(dst, -1)
}

// appendNoTags ends a struct that has no tagged fields.
func appendNoTags(dst []byte, flex bool) []byte {
	if flex {
		return append(dst, 0)
	}
	return dst
}
