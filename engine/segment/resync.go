package segment

import (
	"encoding/binary"
	"errors"
	"math"

	"platter/engine/batch"
)

// resync finds where a log goes on behind bad bytes at pos: the next batch with a right CRC, whose offsets
// lie at or above next and below limit, and behind which the log ends or another batch starts. When there
// is none all the rest is bad, and the offsets up to limit are lost.
func resync(r ReaderAt, pos, size, next, limit int64, cause error) Bad {
	var corrupt *CorruptError
	if errors.As(cause, &corrupt) {
		cause = corrupt.Cause // where it is stands in the range
	}
	bad := Bad{Pos: pos, End: size, Offset: next, NextOffset: limit, Cause: cause}
	x := &resyncer{r: r, size: size, next: next, limit: limit, budget: 2*(size-pos) + 64<<20}
	var head [batch.LogOverheadBytes]byte
	if readFull(r, head[:], pos) == nil {
		if n, err := batch.SizeOf(head[:]); err == nil && x.good(pos+int64(n)) {
			bad.End, bad.NextOffset = pos+int64(n), x.base
			return bad
		}
	}
	if at, ok := x.search(pos + 1); ok {
		bad.End, bad.NextOffset = at, x.base
	}
	return bad
}

type resyncer struct {
	r           ReaderAt
	size        int64
	next, limit int64
	budget      int64 // bytes that may still be checked with CRC: bounds what crafted garbage can cost
	base        int64 // of the batch found
}

// good reports whether a batch starts at pos that can be trusted.
func (x *resyncer) good(pos int64) bool {
	if pos >= x.size || x.budget <= 0 {
		return false
	}
	var sc Scanner
	sc.init(x.r, pos, x.size, ScanOptions{CRC: true, NextOffset: x.next, LimitOffset: x.limit})
	defer sc.Close()
	ok := sc.Next()
	x.budget -= max(sc.next-pos, batch.HeaderBytes)
	if !ok || sc.Batch().BaseOffset() >= x.limit {
		return false
	}
	x.base = sc.Batch().BaseOffset()
	sc.o.CRC = false
	return sc.End() == x.size || sc.Next()
}

// search tries every position from pos on where the fixed bytes of a header are right.
func (x *resyncer) search(pos int64) (int64, bool) {
	const magicPos, stepBytes = 16, 64 << 10
	buf := make([]byte, stepBytes+batch.HeaderBytes)
	for ; pos+batch.HeaderBytes <= x.size && x.budget > 0; pos += stepBytes {
		p := buf[:min(int64(len(buf)), x.size-pos)]
		if readFull(x.r, p, pos) != nil {
			return 0, false
		}
		for i := 0; i < stepBytes && i+batch.HeaderBytes <= len(p); i++ {
			if p[i+magicPos] != 2 || p[i] != 0 {
				continue
			}
			base := int64(binary.BigEndian.Uint64(p[i:]))
			n := int64(int32(binary.BigEndian.Uint32(p[i+8:])))
			if base < x.next || base >= x.limit || n < 0 || n > math.MaxInt32 || pos+int64(i)+n > x.size {
				continue
			}
			if x.good(pos + int64(i)) {
				return pos + int64(i), true
			}
		}
	}
	return 0, false
}
