package batch

import (
	"hash/crc32"
	"math"
)

// DefaultDecompressedBytesMax bounds what a batch may inflate to where the caller sets no bound.
const DefaultDecompressedBytesMax = 128 << 20

// Limits bound what Check accepts.
type Limits struct {
	BatchBytesMax        int   // max.message.bytes: a whole batch, its overhead included; 0: no bound
	DecompressedBytesMax int64 // what one batch may inflate to; 0: DefaultDecompressedBytesMax
	KeyRequired          bool  // compacted topic: a record without a key is invalid
	BeforeMaxMs          int64 // message.timestamp.before.max.ms, against NowMs
	AfterMaxMs           int64 // message.timestamp.after.max.ms, against NowMs
	NowMs                int64
	CheckTimestamps      bool // CreateTime topics
	HeaderOnly           bool // compressed batches get the header checks alone
}

// Info is what Check found out about the records.
type Info struct {
	// MaxTimestampMs is the largest time of any record, -1 when none has one. With HeaderOnly, of a
	// compressed batch, it is the header's word.
	MaxTimestampMs int64
	// OffsetDeltaMaxTimestamp is the offset delta of the first record that carries it. With HeaderOnly,
	// of a compressed batch, the last record's.
	OffsetDeltaMaxTimestamp int32
	// InflatedBytes is the size of the records without compression.
	InflatedBytes int64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b Batch) uint32 { return crc32.Checksum(b[posAttributes:], castagnoli) }

// CheckCRC recomputes the CRC32C, after length and magic: it is safe on any bytes.
func CheckCRC(b Batch) error {
	if err := checkFrame(b); err != nil {
		return err
	}
	if got, want := checksum(b), b.CRC(); got != want {
		return bad(ErrCRC, posCRC, "CRC32C", "is %08x, computed %08x", want, got)
	}
	return nil
}

// checkFrame makes sure that the view is one whole batch v2.
func checkFrame(b Batch) error {
	n, err := SizeOf(b)
	if err != nil {
		return err
	}
	if n > len(b) {
		return bad(ErrTruncated, 0, "batch", "has %d of %d bytes", len(b), n)
	}
	if n < len(b) {
		return bad(ErrLength, posLength, "batch length", "is %d, the view has %d bytes", n-LogOverheadBytes, len(b))
	}
	return nil
}

// Check validates a batch that a client sent: length, magic, CRC32C, counts, codec, timestamps,
// and the records inside by a walk that allocates nothing that grows with the payload.
// The rules are those of Kafka's LogValidator for appends by clients, two of them stricter: offset
// deltas must run 0, 1, 2 … (Kafka rewrites the batch), and a time type of LogAppendTime is always
// refused, as only the broker sets it. As Kafka does, the appender then corrects the header's max
// timestamp (SetMaxTimestamp) where the records say otherwise.
//
// Whether transactional and control batches are welcome is for the caller to say.
func Check(b Batch, l Limits) (Info, error) {
	if err := checkFrame(b); err != nil {
		return Info{}, err
	}
	if l.BatchBytesMax > 0 && len(b) > l.BatchBytesMax {
		return Info{}, bad(ErrTooLarge, posLength, "batch", "has %d bytes, allowed are %d", len(b), l.BatchBytesMax)
	}
	if err := CheckCRC(b); err != nil {
		return Info{}, err
	}
	if err := checkHeader(b); err != nil {
		return Info{}, err
	}
	codec := b.Codec()
	if codec != None && l.HeaderOnly {
		return headerInfo(b, l)
	}
	s := newScan(b, l)
	if codec == None {
		s.p, s.base = b.Records(), HeaderBytes
	} else {
		in, err := openInflater(codec, b.Records(), l.DecompressedBytesMax)
		if err != nil {
			return Info{}, err
		}
		defer in.close()
		s.in = in
	}
	if err := s.run(b.Count()); err != nil {
		return Info{}, err
	}
	return Info{
		MaxTimestampMs:          s.maxTimestamp,
		OffsetDeltaMaxTimestamp: s.maxDelta,
		InflatedBytes:           s.base + int64(s.pos) - s.start(),
	}, nil
}

// checkHeader is what the header alone can prove wrong.
func checkHeader(b Batch) error {
	if !b.Codec().Valid() {
		return bad(ErrCodec, posAttributes, "attributes", "name codec %d", b.Codec())
	}
	if b.LogAppendTime() {
		return bad(ErrTimestamp, posAttributes, "attributes", "say LogAppendTime, which only the broker may set")
	}
	count, delta := b.Count(), b.LastOffsetDelta()
	if count <= 0 {
		return bad(ErrInvalid, posCount, "record count", "is %d", count)
	}
	if delta < 0 || int64(count) != int64(delta)+1 {
		return bad(ErrInvalid, posLastOffsetDelta, "last offset delta", "is %d with %d records", delta, count)
	}
	if b.ProducerID() >= 0 && b.BaseSequence() < 0 {
		return bad(ErrInvalid, posBaseSequence, "base sequence", "is %d with producer id %d", b.BaseSequence(), b.ProducerID())
	}
	return nil
}

// headerInfo takes the header's word for the records, but for the bounds on the times it names.
func headerInfo(b Batch, l Limits) (Info, error) {
	lo, hi := l.timestamps()
	if t := b.MaxTimestamp(); t != noTimestamp && (t < lo || t > hi) {
		return Info{}, bad(ErrTimestamp, posMaxTimestamp, "max timestamp", "%d is not within %d and %d", t, lo, hi)
	}
	return Info{MaxTimestampMs: b.MaxTimestamp(), OffsetDeltaMaxTimestamp: b.LastOffsetDelta()}, nil
}

// noTimestamp is a record without a time; no bound applies to it.
const noTimestamp = -1

// timestamps is the range of times that are accepted, inclusive.
func (l *Limits) timestamps() (lo, hi int64) {
	lo, hi = math.MinInt64, math.MaxInt64
	if !l.CheckTimestamps {
		return lo, hi
	}
	if t := l.NowMs - l.BeforeMaxMs; l.BeforeMaxMs >= 0 && t <= l.NowMs {
		lo = t
	}
	if t := l.NowMs + l.AfterMaxMs; l.AfterMaxMs >= 0 && t >= l.NowMs {
		hi = t
	}
	return lo, hi
}
