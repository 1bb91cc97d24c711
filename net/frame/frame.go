// Package frame is requests and replies as bytes on a connection: a request is one bounded, pooled
// buffer; a reply is made of bytes and file ranges.
package frame

import (
	"net"

	"platter/io/disk"
)

// Reply is what one request answers. Parts go out in order behind a 4-byte length.
type Reply struct{}

// Bytes appends bytes that must stay unchanged until Release.
func (r *Reply) Bytes(p []byte) { panic("stub") }

// Range appends a file range.
func (r *Reply) Range(g disk.Range) { panic("stub") }

// OnRelease runs f once the reply was sent or given up.
func (r *Reply) OnRelease(f func()) { panic("stub") }

// Len is the size in bytes behind the length prefix.
func (r *Reply) Len() int64 { panic("stub") }

// Send writes the reply: small ranges are copied and coalesced with the bytes, large ones go by SendTo.
func (r *Reply) Send(c net.Conn) error { panic("stub") }

// Release gives everything back; called exactly once.
func (r *Reply) Release() { panic("stub") }
