package zk

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed: the bytes are no such record. The server answers Marshalling.
var ErrMalformed = errors.New("malformed jute record")

// AppendBool, AppendInt32 and their like add one jute value.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendInt32 adds an int.
func AppendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendInt64 adds a long.
func AppendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendString adds a ustring.
func AppendString(b []byte, s string) []byte {
	return append(AppendInt32(b, int32(len(s))), s...)
}

// AppendBuffer adds a buffer; nil is null, which stays distinct from empty.
func AppendBuffer(b, v []byte) []byte {
	if v == nil {
		return AppendInt32(b, -1)
	}
	return append(AppendInt32(b, int32(len(v))), v...)
}

// AppendStrings adds a vector of ustrings; nil is an empty vector.
func AppendStrings(b []byte, v []string) []byte {
	b = AppendInt32(b, int32(len(v)))
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}

// AppendFrame adds a frame's length prefix and what body appends after it.
func AppendFrame(b []byte, body func([]byte) []byte) []byte {
	at := len(b)
	b = body(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// Decoder reads jute values from a buffer that it borrows. The first error sticks: later reads give
// zero values, and Err tells.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder reads from b.
func NewDecoder(b []byte) Decoder { return Decoder{b: b} }

// Err is ErrMalformed once a read went beyond the buffer.
func (d *Decoder) Err() error { return d.err }

// Rest is what has not been read, borrowed.
func (d *Decoder) Rest() []byte { return d.b }

func (d *Decoder) fail() { d.err, d.b = ErrMalformed, nil }

func (d *Decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	v := d.take(1)
	if v == nil {
		return 0
	}
	return v[0]
}

// Bool reads a bool; any byte but 0 is true.
func (d *Decoder) Bool() bool { return d.Byte() != 0 }

// Int32 reads an int.
func (d *Decoder) Int32() int32 {
	v := d.take(4)
	if v == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(v))
}

// Int64 reads a long.
func (d *Decoder) Int64() int64 {
	v := d.take(8)
	if v == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(v))
}

// Buffer reads a buffer, borrowed; null is nil, empty is not.
func (d *Decoder) Buffer() []byte {
	n := d.Int32()
	if d.err != nil || n == -1 {
		return nil
	}
	return d.take(int(n))
}

// String reads a ustring; null reads as "".
func (d *Decoder) String() string { return string(d.Buffer()) }

// word is String for what is nearly always one of a few words, and then costs no memory.
func (d *Decoder) word() string {
	b := d.Buffer()
	for _, w := range [...]string{"world", "anyone", "digest", "ip"} {
		if string(b) == w {
			return w
		}
	}
	return string(b)
}

// Path reads a ustring that must not be null: a server has no use for a request without a path.
func (d *Decoder) Path() string {
	b := d.Buffer()
	if b == nil {
		d.fail()
	}
	return string(b)
}

// count reads a vector's length, of elements of at least minBytes each; null is -1. Any other negative length is
// that of an empty vector, as in Java (BinaryIndex.done).
func (d *Decoder) count(minBytes int) int {
	n := d.Int32()
	if int(n) > len(d.b)/minBytes {
		d.fail()
		return 0
	}
	if n < -1 {
		return 0
	}
	return int(n)
}

// Strings reads a vector of ustrings; null is nil.
func (d *Decoder) Strings() []string {
	n := d.count(4)
	if n < 0 || d.err != nil {
		return nil
	}
	v := make([]string, 0, n)
	for range n {
		v = append(v, d.String())
	}
	return v
}
