// Package wire is Kafka's protocol between a frame's bytes and Go values.
//
// A request frame behind its length, by header version (KIP-482):
//
//	v0     key int16, version int16, correlation id int32
//	v1     v0, client id: nullable string
//	v2     v1, tagged fields
//
// A response is the correlation id, in flexible versions the tagged fields too, and the body. The
// response to ApiVersions never has the tagged fields, as its reader does not know the version yet.
//
// Produce and Fetch are decoded and encoded here, without copying records and with objects that are
// used again; all other messages by kmsg, behind bounds.
//
// # Who owns the bytes
//
// A decoded Produce borrows its records from the frame, which must outlive it. Everything else that is
// decoded has its own memory.
//
// # Errors
//
// A request that cannot be decoded is a *DecodeError: the connection that it came on is of no more use.
// No input makes this package panic, or take memory for what it announces but does not contain. Bytes
// behind a message are passed over, as Kafka does.
package wire

import (
	"errors"
	"fmt"
)

var (
	// ErrShort: the message ends within a field, or announces more than it holds.
	ErrShort = errors.New("message is cut short")
	// ErrNull: a field that must not be null is.
	ErrNull = errors.New("field must not be null")
	// ErrVarint: an unsigned varint of more than 32 bits.
	ErrVarint = errors.New("varint is too long")
	// ErrTooLarge: the body is larger than BodyBytesMax.
	ErrTooLarge = errors.New("request is too large for its kind")
	// ErrTooMany: more than ElementsMax topics and partitions.
	ErrTooMany = errors.New("too many topics and partitions in one request")
	// ErrUnknownKey: no such API key.
	ErrUnknownKey = errors.New("API key is unknown")
	// ErrVersion: the API key has no such version.
	ErrVersion = errors.New("API version is unknown")
)

// ElementsMax bounds the topics and partitions of one Produce or Fetch, whose frames may be large: each
// takes many times its bytes in memory, here and above.
const ElementsMax = 1 << 17

// DecodeError is a request that is not what its header says. Pos counts from the body's first byte,
// for errors in the header from the frame's; -1 when unknown.
type DecodeError struct {
	Key     int16
	Version int16
	Field   string
	Pos     int
	Cause   error
}

func (e *DecodeError) Error() string {
	s := fmt.Sprintf("decode %s v%d", KeyName(e.Key), e.Version)
	if e.Field != "" {
		s += ": " + e.Field
	}
	if e.Pos >= 0 {
		s += fmt.Sprintf(" at byte %d", e.Pos)
	}
	return s + ": " + e.Cause.Error()
}

func (e *DecodeError) Unwrap() error { return e.Cause }
