package batch

import "errors"

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
