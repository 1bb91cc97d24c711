// Package batch is the record batch v2 as a view on bytes that somebody else owns:
// find, check, patch in place, walk, build. A batch is never copied to be read.
//
//	pos  size  field
//	  0     8  base offset            (outside the CRC, patched by the appender)
//	  8     4  batch length           (bytes from pos 12)
//	 12     4  partition leader epoch (outside the CRC, patched by the appender)
//	 16     1  magic                  (2)
//	 17     4  CRC32C                 (of pos 21 to the end)
//	 21     2  attributes             (bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon)
//	 23     4  last offset delta
//	 27     8  base timestamp         (ms)
//	 35     8  max timestamp          (ms)
//	 43     8  producer id            (-1: none)
//	 51     2  producer epoch
//	 53     4  base sequence
//	 57     4  record count
//	 61     …  records, compressed as a whole when a codec is set
//
// A record, every integer but the attributes a zigzag varint:
//
//	length          of what follows
//	attributes      1 byte, unused
//	timestamp delta to the base timestamp, 64 bits
//	offset delta    to the base offset
//	key length      -1: null, then the key
//	value length    -1: null, then the value
//	header count    then for each: key length, key, value length (-1: null), value
//
// Source: Kafka's DefaultRecordBatch and DefaultRecord javadoc, KIP-98.
//
// # What may run at once
//
// A Batch has no state of its own. Reading one from many goroutines is safe; the Set… methods
// belong to whoever owns the bytes. Check, CheckCRC and Walk take their decoders and buffers from
// pools and may run in any number at once.
//
// # Errors
//
// Whatever is wrong with the bytes is a *CorruptError whose cause is one of the Err… values; no
// input makes this package panic, as long as the field accessors are called on views that Split,
// Check or CheckCRC has accepted.
package batch

import "encoding/binary"

const (
	// HeaderBytes is the size of everything before the records.
	HeaderBytes = 61
	// LogOverheadBytes is the size of base offset and batch length.
	LogOverheadBytes = 12
)

// Positions of the fields; they are on disk and on the wire and never change.
const (
	posLength          = 8
	posLeaderEpoch     = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21
	posLastOffsetDelta = 23
	posBaseTimestamp   = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posCount           = 57
)

// Attribute bits.
const (
	attrCodec         = 0x07
	attrLogAppendTime = 1 << 3
	attrTransactional = 1 << 4
	attrControl       = 1 << 5
	attrDeleteHorizon = 1 << 6
)

// magicV2 is the only magic that this package writes.
const magicV2 = 2

// Batch is a view on exactly one whole batch (LogOverheadBytes + batch length bytes).
type Batch []byte

func (b Batch) int64(pos int) int64 { return int64(binary.BigEndian.Uint64(b[pos:])) }
func (b Batch) int32(pos int) int32 { return int32(binary.BigEndian.Uint32(b[pos:])) }
func (b Batch) int16(pos int) int16 { return int16(binary.BigEndian.Uint16(b[pos:])) }

// BaseOffset is the absolute offset of the batch.
func (b Batch) BaseOffset() int64 { return b.int64(0) }

// LastOffset is the absolute offset of the last record, also when compaction has removed it.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// LeaderEpoch is the partition leader epoch, -1 when none was set.
func (b Batch) LeaderEpoch() int32 { return b.int32(posLeaderEpoch) }

// Magic is the format version.
func (b Batch) Magic() int8 { return int8(b[posMagic]) }

// CRC is the CRC32C that the batch carries.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[posCRC:]) }

func (b Batch) attributes() int16 { return b.int16(posAttributes) }

// Codec is the compression of the records; it may be a number that no codec has.
func (b Batch) Codec() Codec { return Codec(b.attributes() & attrCodec) }

// LogAppendTime reports whether the records' time is the broker's (MaxTimestamp), not their own.
func (b Batch) LogAppendTime() bool { return b.attributes()&attrLogAppendTime != 0 }

// Transactional reports whether the batch is part of a transaction.
func (b Batch) Transactional() bool { return b.attributes()&attrTransactional != 0 }

// Control reports whether the records are control records, which only brokers write.
func (b Batch) Control() bool { return b.attributes()&attrControl != 0 }

// DeleteHorizon is the time in ms after which compaction may drop the batch's tombstones; ok is false
// when none is set (KIP-534: it takes the place of the base timestamp).
func (b Batch) DeleteHorizon() (ms int64, ok bool) {
	return b.int64(posBaseTimestamp), b.attributes()&attrDeleteHorizon != 0
}

// LastOffsetDelta is the last record's offset, relative to the base offset.
func (b Batch) LastOffsetDelta() int32 { return b.int32(posLastOffsetDelta) }

// BaseTimestamp is the time in ms that the records' deltas refer to.
func (b Batch) BaseTimestamp() int64 { return b.int64(posBaseTimestamp) }

// MaxTimestamp is the largest time in ms of any record, or the broker's with LogAppendTime.
func (b Batch) MaxTimestamp() int64 { return b.int64(posMaxTimestamp) }

// ProducerID is -1 when the producer is not idempotent.
func (b Batch) ProducerID() int64 { return b.int64(posProducerID) }

// ProducerEpoch goes with ProducerID.
func (b Batch) ProducerEpoch() int16 { return b.int16(posProducerEpoch) }

// BaseSequence is the first record's sequence number, -1 when none.
func (b Batch) BaseSequence() int32 { return b.int32(posBaseSequence) }

// LastSequence is the last record's sequence number: it wraps from 2^31-1 to 0. -1 when none.
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base < 0 {
		return base
	}
	return int32((int64(base) + int64(b.LastOffsetDelta())) & 0x7fffffff)
}

// Count is the number of records.
func (b Batch) Count() int32 { return b.int32(posCount) }

// Records is what follows the header, as stored.
func (b Batch) Records() []byte { return b[HeaderBytes:] }

// TimestampOf is the record's time in ms as a reader sees it: the broker's with LogAppendTime.
func (b Batch) TimestampOf(r *Record) int64 {
	if b.LogAppendTime() {
		return b.MaxTimestamp()
	}
	return b.BaseTimestamp() + r.TimestampDelta
}

// SetBaseOffset patches the base offset; the CRC does not cover it.
func (b Batch) SetBaseOffset(o int64) { binary.BigEndian.PutUint64(b, uint64(o)) }

// SetLeaderEpoch patches the leader epoch; the CRC does not cover it.
func (b Batch) SetLeaderEpoch(e int32) { binary.BigEndian.PutUint32(b[posLeaderEpoch:], uint32(e)) }

// SetLogAppendTime makes now (ms) the time of all records: max timestamp, attribute bit and CRC are
// rewritten. The records' own deltas stay, as in Kafka; readers ignore them.
func (b Batch) SetLogAppendTime(now int64) { b.setMaxTimestamp(now, b.attributes()|attrLogAppendTime) }

// SetMaxTimestamp corrects the max timestamp of a CreateTime batch to what Check found in its records,
// as Kafka does. When it is right already, nothing is written.
func (b Batch) SetMaxTimestamp(ms int64) { b.setMaxTimestamp(ms, b.attributes()&^attrLogAppendTime) }

func (b Batch) setMaxTimestamp(ms int64, attributes int16) {
	if ms == b.MaxTimestamp() && attributes == b.attributes() {
		return
	}
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(attributes))
	binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(ms))
	b.setCRC()
}

func (b Batch) setCRC() { binary.BigEndian.PutUint32(b[posCRC:], checksum(b)) }
