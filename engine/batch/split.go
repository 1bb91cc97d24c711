package batch

import "encoding/binary"

// SizeOf reads the size in bytes of the batch that starts p (at least LogOverheadBytes long).
// An error when the length cannot be a batch's; where p reaches as far as the magic byte, that byte
// is looked at too, so that an old message set (LegacyMagic) is told from garbage by ErrMagic.
func SizeOf(p []byte) (int, error) {
	if len(p) < LogOverheadBytes {
		return 0, bad(ErrTruncated, 0, "batch length", "has %d of %d bytes", len(p), LogOverheadBytes)
	}
	if len(p) > posMagic && int8(p[posMagic]) != magicV2 {
		return 0, bad(ErrMagic, posMagic, "magic", "is %d", int8(p[posMagic]))
	}
	n := int32(binary.BigEndian.Uint32(p[posLength:]))
	// The largest length would overflow an int of 32 bits, and no batch comes near it.
	if n < HeaderBytes-LogOverheadBytes || n > maxLength {
		return 0, bad(ErrLength, posLength, "batch length", "is %d", n)
	}
	return int(n) + LogOverheadBytes, nil
}

// maxLength keeps length plus overhead within an int32.
const maxLength = 1<<31 - 1 - LogOverheadBytes

// Split cuts p into whole batches, appending views to dst; nothing is copied. What is left over at
// the end is an error (a *CorruptError with its position), after the batches before it were appended.
func Split(dst []Batch, p []byte) ([]Batch, error) {
	for pos := 0; pos < len(p); {
		n, err := SizeOf(p[pos:])
		if err == nil && n > len(p)-pos {
			err = bad(ErrTruncated, 0, "batch", "has %d of %d bytes", len(p)-pos, n)
		}
		if err != nil {
			err.(*CorruptError).Pos += int64(pos)
			return dst, err
		}
		dst = append(dst, Batch(p[pos:pos+n:pos+n]))
		pos += n
	}
	return dst, nil
}
