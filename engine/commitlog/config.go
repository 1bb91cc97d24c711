package commitlog

import (
	"math"

	"platter/engine/batch"
)

// Config is a partition's settings, by Kafka's topic setting names. Milliseconds and bytes; -1 is
// "no limit" where Kafka says so. A zero Config is not valid: start from DefaultConfig.
type Config struct {
	SegmentBytes           int64
	SegmentMs              int64
	SegmentJitterMs        int64
	SegmentIndexBytes      int64
	IndexIntervalBytes     int64
	RetentionBytes         int64
	RetentionMs            int64
	DeleteRetention        bool // cleanup.policy contains delete
	Compacted              bool // cleanup.policy contains compact: keys are required
	FileDeleteDelayMs      int64
	FlushMessages          int64
	FlushMs                int64
	MaxMessageBytes        int
	LogAppendTime          bool
	TimestampBeforeMaxMs   int64
	TimestampAfterMaxMs    int64
	Compression            Compression
	Preallocate            bool
	DecompressedBytesMax   int64
	ValidateHeaderOnly     bool
	ProducerIDExpirationMs int64
}

// Compression is compression.type: Producer keeps what came.
type Compression struct {
	Producer bool
	Codec    batch.Codec
	Level    int // 0: the codec's default
}

// DefaultConfig is Kafka 3.9's defaults.
func DefaultConfig() Config {
	const day = 24 * 60 * 60 * 1000
	return Config{
		SegmentBytes:           1 << 30,
		SegmentMs:              7 * day,
		SegmentIndexBytes:      10 << 20,
		IndexIntervalBytes:     4096,
		RetentionBytes:         -1,
		RetentionMs:            7 * day,
		DeleteRetention:        true,
		FileDeleteDelayMs:      60_000,
		FlushMessages:          math.MaxInt64,
		FlushMs:                math.MaxInt64,
		MaxMessageBytes:        1<<20 + batch.LogOverheadBytes,
		TimestampBeforeMaxMs:   math.MaxInt64,
		TimestampAfterMaxMs:    math.MaxInt64,
		Compression:            Compression{Producer: true},
		DecompressedBytesMax:   batch.DefaultDecompressedBytesMax,
		ProducerIDExpirationMs: day,
	}
}
