package batch

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// The entries of old message sets, magic 0 and 1, as logs before Kafka 0.11 hold them. They are read for
// log dump and log verify, and never written.
//
//	pos  size  field
//	  0     8  offset
//	  8     4  size                   (bytes from pos 12)
//	 12     4  CRC32, IEEE            (of pos 16 to the end)
//	 16     1  magic                  (0 or 1)
//	 17     1  attributes             (bits 0-2 codec, 3 timestamp type with magic 1)
//	 18   0/8  timestamp, ms          (magic 1)
//	  …     4  key length, -1: null   then the key
//	  …     4  value length, -1: null then the value
//
// With a codec the value is a message set, compressed as a whole: the entry is a wrapper. Its offset is
// that of the last entry inside. Inside, offsets are absolute with magic 0, and count from any base with
// magic 1 (KIP-31).
//
// Source: Kafka's LegacyRecord and AbstractLegacyRecordBatch javadoc.
const (
	posLegacyCRC        = 12
	posLegacyMagic      = 16
	posLegacyAttributes = 17
	posLegacyTimestamp  = 18

	legacyTimestampBytes = 8
	// legacySizeMin is CRC, magic, attributes and two lengths.
	legacySizeMin = 14
)

// LegacyEntry is one entry of an old message set; Key and Value are views.
type LegacyEntry struct {
	Offset        int64
	SizeBytes     int // all of it, offset and size included
	Magic         int8
	CRC           uint32 // that it carries
	ComputedCRC   uint32
	Codec         Codec // not None: a wrapper
	LogAppendTime bool
	TimestampMs   int64 // -1 with magic 0
	Key, Value    []byte
}

// LegacyMagic reports whether p, of more than posMagic bytes, starts an entry of an old message set, and
// of which magic. The magic byte is where a batch v2 has it.
func LegacyMagic(p []byte) (magic int8, ok bool) {
	if len(p) <= posLegacyMagic {
		return 0, false
	}
	magic = int8(p[posLegacyMagic])
	return magic, magic == 0 || magic == 1
}

// ReadLegacy reads the entry that starts p. A CRC that does not match is the caller's to judge
// (CheckCRC); everything else that is wrong is a *CorruptError.
func ReadLegacy(p []byte) (LegacyEntry, error) {
	var e LegacyEntry
	if len(p) < LogOverheadBytes+legacySizeMin {
		return e, bad(ErrTruncated, 0, "entry", "has %d bytes", len(p))
	}
	size := int32(binary.BigEndian.Uint32(p[posLength:]))
	if size < legacySizeMin || size > maxLength {
		return e, bad(ErrLength, posLength, "entry size", "is %d", size)
	}
	e.SizeBytes = LogOverheadBytes + int(size)
	if e.SizeBytes > len(p) {
		return e, bad(ErrTruncated, 0, "entry", "has %d of %d bytes", len(p), e.SizeBytes)
	}
	p = p[:e.SizeBytes]
	var ok bool
	if e.Magic, ok = LegacyMagic(p); !ok {
		return e, bad(ErrMagic, posLegacyMagic, "magic", "is %d, not of an old message set", e.Magic)
	}
	e.Offset = int64(binary.BigEndian.Uint64(p))
	e.CRC = binary.BigEndian.Uint32(p[posLegacyCRC:])
	e.ComputedCRC = crc32.ChecksumIEEE(p[posLegacyMagic:])
	e.Codec = Codec(p[posLegacyAttributes] & attrCodec)
	e.LogAppendTime = e.Magic == 1 && p[posLegacyAttributes]&attrLogAppendTime != 0
	e.TimestampMs = noTimestamp
	pos := posLegacyTimestamp
	if e.Magic == 1 {
		if len(p) < pos+legacyTimestampBytes {
			return e, bad(ErrInvalid, int64(pos), "timestamp", "lies behind the entry's end")
		}
		e.TimestampMs = int64(binary.BigEndian.Uint64(p[pos:]))
		pos += legacyTimestampBytes
	}
	if e.Key, pos, ok = legacyBytes(p, pos); !ok {
		return e, bad(ErrInvalid, int64(pos), "key", "does not fit the entry")
	}
	if e.Value, pos, ok = legacyBytes(p, pos); !ok {
		return e, bad(ErrInvalid, int64(pos), "value", "does not fit the entry")
	}
	if pos != len(p) {
		return e, bad(ErrInvalid, int64(pos), "entry", "has %d bytes left over", len(p)-pos)
	}
	return e, nil
}

func legacyBytes(p []byte, pos int) ([]byte, int, bool) {
	if len(p)-pos < 4 {
		return nil, pos, false
	}
	n := int32(binary.BigEndian.Uint32(p[pos:]))
	switch {
	case n == -1:
		return nil, pos + 4, true
	case n < 0 || int(n) > len(p)-pos-4:
		return nil, pos, false
	}
	end := pos + 4 + int(n)
	return p[pos+4 : end : end], end, true
}

// CheckCRC compares the CRC32 that the entry carries with its bytes.
func (e *LegacyEntry) CheckCRC() error {
	if e.CRC != e.ComputedCRC {
		return bad(ErrCRC, posLegacyCRC, "CRC32", "is %08x, computed %08x", e.CRC, e.ComputedCRC)
	}
	return nil
}

// WalkLegacy calls fn for the entry, or for each one inside when it is a wrapper, with absolute offsets
// and, if the wrapper says so, the broker's time. Key and Value are valid during fn. maxBytes bounds
// what is inflated; 0 is DefaultDecompressedBytesMax. fn's error stops the walk and is returned.
func WalkLegacy(e LegacyEntry, maxBytes int64, fn func(LegacyEntry) error) error {
	if e.Codec == None {
		return fn(e)
	}
	if e.Codec > LZ4 {
		return bad(ErrCodec, posLegacyAttributes, "attributes", "name codec %d", e.Codec)
	}
	p, err := e.inflate(maxBytes)
	if err != nil {
		return err
	}
	inner, err := readLegacySet(p)
	if err != nil {
		return err
	}
	if len(inner) == 0 {
		return bad(ErrInvalid, -1, "wrapper", "is empty")
	}
	base := int64(0)
	if e.Magic == 1 {
		base = e.Offset - inner[len(inner)-1].Offset
	}
	for _, x := range inner {
		x.Offset += base
		if e.LogAppendTime {
			x.TimestampMs, x.LogAppendTime = e.TimestampMs, true
		}
		if err := fn(x); err != nil {
			return err
		}
	}
	return nil
}

func readLegacySet(p []byte) ([]LegacyEntry, error) {
	var set []LegacyEntry
	for pos := 0; pos < len(p); {
		x, err := ReadLegacy(p[pos:])
		if err == nil && x.Codec != None {
			err = bad(ErrInvalid, posLegacyAttributes, "attributes", "name a codec inside a wrapper")
		}
		if err != nil {
			err.(*CorruptError).Pos += int64(pos)
			return nil, err
		}
		pos += x.SizeBytes
		set = append(set, x)
	}
	return set, nil
}

// inflate returns what the wrapper holds.
func (e *LegacyEntry) inflate(maxBytes int64) ([]byte, error) {
	payload := e.Value
	if e.Codec == LZ4 && e.Magic == 0 {
		payload = repairLZ4Header(payload)
	}
	in, err := openInflater(e.Codec, payload, maxBytes)
	if err != nil {
		return nil, err
	}
	defer in.close()
	var buf bytes.Buffer
	for {
		p, err := in.next()
		if err == io.EOF {
			return buf.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		buf.Write(p)
	}
}

// repairLZ4Header copies a frame and corrects its header checksum: with magic 0, Kafka's clients
// computed it over the wrong bytes (KAFKA-3160).
func repairLZ4Header(p []byte) []byte {
	sum := 6
	if len(p) > 4 && p[4]&lz4FlagSize != 0 {
		sum += 8
	}
	if len(p) <= sum {
		return p
	}
	p = append([]byte(nil), p...)
	p[sum] = byte(xxh32Short(p[4:sum]) >> 8)
	return p
}

// xxh32Short is XXH32 with seed 0 of less than 16 bytes.
func xxh32Short(p []byte) uint32 {
	const p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	h := uint32(p5) + uint32(len(p))
	for ; len(p) >= 4; p = p[4:] {
		h += binary.LittleEndian.Uint32(p) * p3
		h = (h<<17 | h>>15) * p4
	}
	for _, c := range p {
		h += uint32(c) * p5
		h = (h<<11 | h>>21) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
