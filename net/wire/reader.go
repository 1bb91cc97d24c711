package wire

import "encoding/binary"

// reader takes fields off a body. The first error sticks; after it every field is zero.
type reader struct {
	p     []byte
	pos   int
	flex  bool // compact lengths and tagged fields
	elems int  // of all arrays so far
	field string
	err   error
}

func (r *reader) fail(field string, err error) {
	if r.err == nil {
		r.field, r.err = field, err
		r.p = r.p[:r.pos] // nothing more is there
	}
}

// span takes n bytes; nil when they are not there.
func (r *reader) span(field string, n int) []byte {
	if n < 0 || n > len(r.p)-r.pos {
		r.fail(field, ErrShort)
		return nil
	}
	r.pos += n
	return r.p[r.pos-n : r.pos : r.pos]
}

func (r *reader) int8(field string) int8 {
	if p := r.span(field, 1); p != nil {
		return int8(p[0])
	}
	return 0
}

func (r *reader) int16(field string) int16 {
	if p := r.span(field, 2); p != nil {
		return int16(binary.BigEndian.Uint16(p))
	}
	return 0
}

func (r *reader) int32(field string) int32 {
	if p := r.span(field, 4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

func (r *reader) int64(field string) int64 {
	if p := r.span(field, 8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

func (r *reader) uuid(field string) (id [16]byte) {
	copy(id[:], r.span(field, 16))
	return id
}

func (r *reader) uvarint(field string) uint32 {
	var u uint64
	for shift := 0; shift < 35; shift += 7 {
		p := r.span(field, 1)
		if p == nil {
			return 0
		}
		u |= uint64(p[0]&0x7f) << shift
		if p[0] < 0x80 {
			if u > 1<<32-1 {
				break
			}
			return uint32(u)
		}
	}
	r.fail(field, ErrVarint)
	return 0
}

// length reads the length of bytes or an array: 4 bytes, or compact; -1 is null.
func (r *reader) length(field string) int {
	if r.flex {
		return int(int64(r.uvarint(field)) - 1)
	}
	return int(r.int32(field))
}

// nullableString reads a string as a view; nil is null.
func (r *reader) nullableString(field string) []byte {
	var n int
	if r.flex {
		n = r.length(field)
	} else {
		n = int(r.int16(field))
	}
	if r.err != nil || n == -1 {
		return nil
	}
	return r.span(field, n)
}

// string reads a string, which must not be null, as a view.
func (r *reader) string(field string) []byte {
	s := r.nullableString(field)
	if s == nil {
		r.fail(field, ErrNull)
	}
	return s
}

// nullableBytes reads bytes as a view; nil is null.
func (r *reader) nullableBytes(field string) []byte {
	n := r.length(field)
	if r.err != nil || n == -1 {
		return nil
	}
	return r.span(field, n)
}

// array reads the number of elements, each of which takes elemBytes at least.
func (r *reader) array(field string, elemBytes int) int {
	n := r.length(field)
	switch {
	case r.err != nil:
		return 0
	case n == -1:
		r.fail(field, ErrNull)
		return 0
	case n < 0 || n > (len(r.p)-r.pos)/elemBytes:
		r.fail(field, ErrShort)
		return 0
	}
	if r.elems += n; r.elems > ElementsMax {
		r.fail(field, ErrTooMany)
		return 0
	}
	return n
}

// tags passes over the tagged fields of a flexible version; known, which may be nil, is given each of
// them with a reader that ends where the tag ends.
func (r *reader) tags(known func(tag uint32, t *reader)) {
	if !r.flex {
		return
	}
	for n := r.uvarint("tag count"); n > 0 && r.err == nil; n-- {
		tag := r.uvarint("tag")
		size := r.uvarint("tag size")
		if int64(size) > int64(len(r.p)-r.pos) {
			r.fail("tag", ErrShort)
			return
		}
		p := r.span("tag", int(size))
		if known == nil || r.err != nil {
			continue
		}
		t := reader{p: p, flex: true}
		if known(tag, &t); t.err != nil {
			r.pos -= len(p) - t.pos
			r.fail(t.field, t.err)
		}
	}
}

// done is the verdict.
func (r *reader) done(key, version int16) error {
	if r.err == nil {
		return nil
	}
	return &DecodeError{Key: key, Version: version, Field: r.field, Pos: r.pos, Cause: r.err}
}
