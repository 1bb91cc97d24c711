package batch

// Codec is the compression of a batch: attributes bits 0 to 2.
type Codec uint8

// Codecs by their number on the wire.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// LogOverheadBytes is the size of base offset and batch length.
const LogOverheadBytes = 12

// Limits bound what Check accepts.
type Limits struct {
	BatchBytesMax        int   // max.message.bytes: a whole batch, its overhead included
	DecompressedBytesMax int64 // what one batch may inflate to
	KeyRequired          bool  // compacted topic: a record without a key is invalid
	BeforeMaxMs          int64 // message.timestamp.before.max.ms, against NowMs
	AfterMaxMs           int64 // message.timestamp.after.max.ms, against NowMs
	NowMs                int64
	CheckTimestamps      bool // CreateTime topics
	HeaderOnly           bool // compressed batches get the header checks alone
}

// Fields, read from the view. Offsets are absolute.
func (b Batch) BaseOffset() int64          { panic("stub") }
func (b Batch) LastOffset() int64          { panic("stub") }
func (b Batch) LeaderEpoch() int32         { panic("stub") }
func (b Batch) Magic() int8                { panic("stub") }
func (b Batch) Codec() Codec               { panic("stub") }
func (b Batch) LogAppendTime() bool        { panic("stub") }
func (b Batch) Transactional() bool        { panic("stub") }
func (b Batch) Control() bool              { panic("stub") }
func (b Batch) LastOffsetDelta() int32     { panic("stub") }
func (b Batch) BaseTimestamp() int64       { panic("stub") }
func (b Batch) MaxTimestamp() int64        { panic("stub") }
func (b Batch) ProducerID() int64          { panic("stub") }
func (b Batch) ProducerEpoch() int16       { panic("stub") }
func (b Batch) BaseSequence() int32        { panic("stub") }
func (b Batch) LastSequence() int32        { panic("stub") }
func (b Batch) Count() int32               { panic("stub") }
func (b Batch) SetBaseOffset(o int64)      { panic("stub") }
func (b Batch) SetLeaderEpoch(e int32)     { panic("stub") }
func (b Batch) SetLogAppendTime(now int64) { panic("stub") } // max timestamp, attribute bit and CRC rewritten

// SizeOf reads the size in bytes of the batch that starts p (at least LogOverheadBytes long).
// An error when the length cannot be a batch's.
func SizeOf(p []byte) (int, error) { panic("stub") }

// Split cuts p into whole batches, appending views to dst; nothing is copied. What is left over at
// the end is an error (a *CorruptError with its position).
func Split(dst []Batch, p []byte) ([]Batch, error) { panic("stub") }

// Check validates a batch that a client sent: length, magic, CRC32C, counts, codec, timestamps,
// and the records inside by a walk that allocates nothing that grows with the payload.
// maxTimestamp and its offset delta are as the records say (for the time index).
func Check(b Batch, l Limits) (Info, error) { panic("stub") }

// Info is what Check found out about the records.
type Info struct {
	MaxTimestampMs          int64
	OffsetDeltaMaxTimestamp int32 // delta of the first record that carries it
}

// CheckCRC recomputes the CRC32C.
func CheckCRC(b Batch) error { panic("stub") }

// Record is one decoded record; its slices are views on the (decompressed) bytes.
type Record struct {
	Attributes     int8
	TimestampDelta int64
	OffsetDelta    int32
	Key, Value     []byte // nil: null
	Headers        []Header
}

// Header is one record header. A null value is nil.
type Header struct {
	Key   string
	Value []byte
}

// Walk calls fn for each record; the Record is reused between calls, its bytes are valid during fn.
// maxBytes bounds the decompressed size. fn's error stops the walk and is returned.
func Walk(b Batch, maxBytes int64, fn func(*Record) error) error { panic("stub") }

// Recompress returns a new batch, equal but for its codec and CRC (topic setting compression.type).
func Recompress(b Batch, c Codec, level int, maxBytes int64) (Batch, error) { panic("stub") }

// Builder makes a batch: tests, the CLI's log tools, internal topics.
type Builder struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	LogAppendTime bool
}

// NewBuilder returns a builder without producer state (-1 in its three fields).
func NewBuilder() *Builder { panic("stub") }

// Add appends one record with an absolute timestamp in ms.
func (bl *Builder) Add(timestampMs int64, key, value []byte, headers ...Header) { panic("stub") }

// Build returns the batch, compressed and with its CRC. The bytes are the caller's.
func (bl *Builder) Build() (Batch, error) { panic("stub") }

// CorruptError is a batch that is not what it says. Cause is one of the Err… below.
type CorruptError struct {
	Pos   int64 // where in the bytes given, or -1
	Field string
	Cause error
}

func (e *CorruptError) Error() string { panic("stub") }
func (e *CorruptError) Unwrap() error { return e.Cause }
