package batch

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Builder makes a batch: tests, the CLI's log tools, internal topics.
type Builder struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	Level         int // of the codec; 0 is its default
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	LogAppendTime bool

	records       []byte
	count         int32
	baseTimestamp int64
	maxTimestamp  int64
}

// NewBuilder returns a builder without leader epoch and producer state (-1 in all of them).
func NewBuilder() *Builder {
	return &Builder{LeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
}

// Add appends one record with an absolute timestamp in ms. Nil key or value: null. Key, value and
// headers are copied.
func (bl *Builder) Add(timestampMs int64, key, value []byte, headers ...Header) {
	if bl.count == 0 {
		bl.baseTimestamp, bl.maxTimestamp = timestampMs, timestampMs
	}
	bl.maxTimestamp = max(bl.maxTimestamp, timestampMs)
	delta := timestampMs - bl.baseTimestamp

	size := 1 + varintBytes(delta) + varintBytes(int64(bl.count)) + sizeOfBytes(key) + sizeOfBytes(value)
	size += varintBytes(int64(len(headers)))
	for _, h := range headers {
		size += varintBytes(int64(len(h.Key))) + len(h.Key) + sizeOfBytes(h.Value)
	}
	r := appendVarint(bl.records, int64(size))
	r = append(r, 0)
	r = appendVarint(r, delta)
	r = appendVarint(r, int64(bl.count))
	r = appendBytes(r, key)
	r = appendBytes(r, value)
	r = appendVarint(r, int64(len(headers)))
	for _, h := range headers {
		r = append(appendVarint(r, int64(len(h.Key))), h.Key...)
		r = appendBytes(r, h.Value)
	}
	bl.records = r
	bl.count++
}

func sizeOfBytes(p []byte) int {
	if p == nil {
		return 1
	}
	return varintBytes(int64(len(p))) + len(p)
}

func appendBytes(dst, p []byte) []byte {
	if p == nil {
		return appendVarint(dst, -1)
	}
	return append(appendVarint(dst, int64(len(p))), p...)
}

// Count is the number of records added.
func (bl *Builder) Count() int { return int(bl.count) }

// SizeBytes is the batch's size without compression.
func (bl *Builder) SizeBytes() int { return HeaderBytes + len(bl.records) }

// Build returns the batch, compressed and with its CRC. The bytes are the caller's; the builder may go
// on. A batch of no records is an error (ErrInvalid).
func (bl *Builder) Build() (Batch, error) {
	if bl.count == 0 {
		return nil, bad(ErrInvalid, -1, "record count", "is 0")
	}
	var buf bytes.Buffer
	buf.Grow(bl.SizeBytes())
	buf.Write(make([]byte, HeaderBytes))
	err := deflate(&buf, bl.Codec, bl.Level, func(w io.Writer) error {
		_, err := w.Write(bl.records)
		return err
	})
	if err != nil {
		return nil, err
	}
	b := Batch(buf.Bytes())
	if len(b) > maxLength {
		return nil, bad(ErrLength, -1, "batch", "has %d bytes", len(b))
	}
	b.SetBaseOffset(bl.BaseOffset)
	b.setLength()
	b.SetLeaderEpoch(bl.LeaderEpoch)
	b[posMagic] = magicV2
	binary.BigEndian.PutUint16(b[posAttributes:], bl.attributes())
	binary.BigEndian.PutUint32(b[posLastOffsetDelta:], uint32(bl.count-1))
	binary.BigEndian.PutUint64(b[posBaseTimestamp:], uint64(bl.baseTimestamp))
	binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(bl.maxTimestamp))
	binary.BigEndian.PutUint64(b[posProducerID:], uint64(bl.ProducerID))
	binary.BigEndian.PutUint16(b[posProducerEpoch:], uint16(bl.ProducerEpoch))
	binary.BigEndian.PutUint32(b[posBaseSequence:], uint32(bl.BaseSequence))
	binary.BigEndian.PutUint32(b[posCount:], uint32(bl.count))
	b.setCRC()
	return b, nil
}

func (bl *Builder) attributes() uint16 {
	a := uint16(bl.Codec) & attrCodec
	if bl.LogAppendTime {
		a |= attrLogAppendTime
	}
	if bl.Transactional {
		a |= attrTransactional
	}
	if bl.Control {
		a |= attrControl
	}
	return a
}

func (b Batch) setLength() {
	binary.BigEndian.PutUint32(b[posLength:], uint32(len(b)-LogOverheadBytes))
}

// Recompress returns a new batch, equal but for its codec and CRC (topic setting compression.type).
// The bytes are the caller's. level 0 is the codec's default; maxBytes bounds what b may inflate to.
// The records are moved as they are: b was checked before.
func Recompress(b Batch, c Codec, level int, maxBytes int64) (Batch, error) {
	if err := checkFrame(b); err != nil {
		return nil, err
	}
	if from := b.Codec(); !from.Valid() {
		return nil, bad(ErrCodec, posAttributes, "attributes", "name codec %d", from)
	}
	var buf bytes.Buffer
	buf.Grow(len(b))
	buf.Write(b[:HeaderBytes])
	err := deflate(&buf, c, level, func(w io.Writer) error { return inflateTo(w, b, maxBytes) })
	if err != nil {
		return nil, err
	}
	out := Batch(buf.Bytes())
	if len(out) > maxLength {
		return nil, bad(ErrLength, -1, "batch", "has %d bytes", len(out))
	}
	out.setLength()
	binary.BigEndian.PutUint16(out[posAttributes:], uint16(b.attributes())&^attrCodec|uint16(c))
	out.setCRC()
	return out, nil
}

// inflateTo writes b's records without compression.
func inflateTo(w io.Writer, b Batch, maxBytes int64) error {
	if b.Codec() == None {
		_, err := w.Write(b.Records())
		return err
	}
	in, err := openInflater(b.Codec(), b.Records(), maxBytes)
	if err != nil {
		return err
	}
	defer in.close()
	for {
		p, err := in.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
}
