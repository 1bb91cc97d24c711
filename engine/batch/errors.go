package batch

import (
	"errors"
	"fmt"
)

// Causes, matched by errors.Is; net/api maps them to Kafka's codes.
var (
	ErrTruncated   = errors.New("batch is cut short")                    // CORRUPT_MESSAGE
	ErrLength      = errors.New("batch length is impossible")            // CORRUPT_MESSAGE
	ErrMagic       = errors.New("magic is not 2")                        // UNSUPPORTED_FOR_MESSAGE_FORMAT for 0 and 1, else CORRUPT_MESSAGE
	ErrCRC         = errors.New("CRC32C does not match")                 // CORRUPT_MESSAGE
	ErrTooLarge    = errors.New("batch is larger than allowed")          // MESSAGE_TOO_LARGE
	ErrInvalid     = errors.New("batch contradicts its records")         // INVALID_RECORD
	ErrTimestamp   = errors.New("timestamp is out of range")             // INVALID_TIMESTAMP
	ErrCodec       = errors.New("codec is unknown")                      // UNSUPPORTED_COMPRESSION_TYPE
	ErrInflate     = errors.New("records do not decompress")             // CORRUPT_MESSAGE
	ErrBomb        = errors.New("records inflate beyond the bound")      // MESSAGE_TOO_LARGE
	ErrKeyRequired = errors.New("record has no key, topic is compacted") // INVALID_RECORD
)

// CorruptError is a batch that is not what it says. Cause is one of the Err… above.
type CorruptError struct {
	Pos    int64  // where in the bytes given (in the inflated records, when compressed), or -1
	Field  string // what was read there
	Record int32  // index of the record in its batch, or -1
	Detail string // what was found, for the log; may be empty
	Cause  error
}

func (e *CorruptError) Error() string {
	s := e.Cause.Error() + ": " + e.Field
	if e.Detail != "" {
		s += " " + e.Detail
	}
	if e.Record >= 0 {
		s += fmt.Sprintf(", record %d", e.Record)
	}
	if e.Pos >= 0 {
		s += fmt.Sprintf(", at byte %d", e.Pos)
	}
	return s
}

func (e *CorruptError) Unwrap() error { return e.Cause }

// bad is a CorruptError about the batch itself.
func bad(cause error, pos int64, field, format string, args ...any) error {
	return &CorruptError{Pos: pos, Field: field, Record: -1, Detail: fmt.Sprintf(format, args...), Cause: cause}
}
