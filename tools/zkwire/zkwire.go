// Package zkwire speaks ZooKeeper's protocol from outside: it shares nothing with coord/zk, so that a mistake
// there is not made here too, and it sends whatever it is told to, malformed requests among it.
//
// Conn is one connection, one request at a time or many in a row, for one goroutine. Client is a session with a
// reader goroutine and pings, for load.
package zkwire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Operations.
const (
	OpCreate = 1 + iota
	OpDelete
	OpExists
	OpGetData
	OpSetData
	OpGetACL
	OpSetACL
	OpGetChildren
	OpSync
	_
	OpPing
	OpGetChildren2
	OpCheck
	OpMulti
	OpCreate2
	OpReconfig
	OpCheckWatches
	OpRemoveWatches
	OpCreateContainer
	OpDeleteContainer
	OpCreateTTL
	OpMultiRead
)

// Operations with numbers out of the row.
const (
	OpAuth                 = 100
	OpSetWatches           = 101
	OpSASL                 = 102
	OpGetEphemerals        = 103
	OpGetAllChildrenNumber = 104
	OpSetWatches2          = 105
	OpAddWatch             = 106
	OpWhoAmI               = 107
	OpClose                = -11
)

// Xids with a meaning of their own.
const (
	XidEvent      = -1
	XidPing       = -2
	XidAuth       = -4
	XidSetWatches = -8
)

// Error codes that callers look for.
const (
	ErrNoNode     = -101
	ErrNodeExists = -110
)

// Enc builds a record; the zero value is empty.
type Enc struct{ B []byte }

// I32 adds an int.
func (e *Enc) I32(v int32) { e.B = binary.BigEndian.AppendUint32(e.B, uint32(v)) }

// I64 adds a long.
func (e *Enc) I64(v int64) { e.B = binary.BigEndian.AppendUint64(e.B, uint64(v)) }

// Bool adds a boolean.
func (e *Enc) Bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	e.B = append(e.B, b)
}

// Str adds a ustring.
func (e *Enc) Str(s string) {
	e.I32(int32(len(s)))
	e.B = append(e.B, s...)
}

// Buf adds a buffer; nil is null.
func (e *Enc) Buf(p []byte) {
	if p == nil {
		e.I32(-1)
		return
	}
	e.I32(int32(len(p)))
	e.B = append(e.B, p...)
}

// Strs adds a vector of ustrings.
func (e *Enc) Strs(v []string) {
	e.I32(int32(len(v)))
	for _, s := range v {
		e.Str(s)
	}
}

// ACL is one entry of an access list.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

// World is the list that opens a node to all.
var World = []ACL{{31, "world", "anyone"}}

// ACLs adds an access list.
func (e *Enc) ACLs(v []ACL) {
	e.I32(int32(len(v)))
	for _, a := range v {
		e.I32(a.Perms)
		e.Str(a.Scheme)
		e.Str(a.ID)
	}
}

// MultiHeader adds the header of one operation of a multi.
func (e *Enc) MultiHeader(op int32, done bool) {
	e.I32(op)
	e.Bool(done)
	e.I32(-1)
}

// Body is what follows a request's header; nil is nothing.
type Body func(*Enc)

// Create is the record of create, create2 and createContainer, open to all.
func Create(path string, data []byte, flags int32) Body {
	return CreateACL(path, data, World, flags)
}

// CreateACL is Create with an access list.
func CreateACL(path string, data []byte, acl []ACL, flags int32) Body {
	return func(e *Enc) {
		e.Str(path)
		e.Buf(data)
		e.ACLs(acl)
		e.I32(flags)
	}
}

// PathWatch is the record of exists, getData and getChildren.
func PathWatch(path string, watch bool) Body {
	return func(e *Enc) {
		e.Str(path)
		e.Bool(watch)
	}
}

// Set is setData's record.
func Set(path string, data []byte, version int32) Body {
	return func(e *Enc) {
		e.Str(path)
		e.Buf(data)
		e.I32(version)
	}
}

// PathInt is a path and a number: delete and check (version), addWatch (mode), removeWatches (type).
func PathInt(path string, n int32) Body {
	return func(e *Enc) {
		e.Str(path)
		e.I32(n)
	}
}

// Path is a path alone: sync, getACL, getEphemerals and others.
func Path(path string) Body { return func(e *Enc) { e.Str(path) } }

// Auth is the record of addAuth.
func Auth(scheme string, auth []byte) Body {
	return func(e *Enc) {
		e.I32(0)
		e.Str(scheme)
		e.Buf(auth)
	}
}

// Request is a whole frame.
func Request(xid, op int32, body Body) []byte {
	e := Enc{B: make([]byte, 4, 160)}
	e.I32(xid)
	e.I32(op)
	if body != nil {
		body(&e)
	}
	return sealed(e.B)
}

func sealed(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// Dec reads a record. Bad is set, and zero values come, once it is read beyond its end.
type Dec struct {
	B   []byte
	Bad bool
}

func (d *Dec) take(n int) []byte {
	if n < 0 || n > len(d.B) {
		d.Bad, d.B = true, nil
		return nil
	}
	v := d.B[:n]
	d.B = d.B[n:]
	return v
}

// I32 reads an int.
func (d *Dec) I32() int32 {
	if v := d.take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

// I64 reads a long.
func (d *Dec) I64() int64 {
	if v := d.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// Bool reads a boolean.
func (d *Dec) Bool() bool {
	v := d.take(1)
	return v != nil && v[0] != 0
}

// Buf reads a buffer, borrowed from the frame; null is nil.
func (d *Dec) Buf() []byte {
	n := d.I32()
	if d.Bad || n == -1 {
		return nil
	}
	return d.take(int(n))
}

// Str reads a ustring.
func (d *Dec) Str() string { return string(d.Buf()) }

// Strs reads a vector of ustrings.
func (d *Dec) Strs() []string {
	var v []string
	for n := d.I32(); n > 0 && !d.Bad; n-- {
		v = append(v, d.Str())
	}
	return v
}

// Stat is a node's.
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime  int64
	Version, Cversion, Aversion int32
	Owner                       int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// Stat reads a Stat.
func (d *Dec) Stat() (s Stat) {
	s.Czxid, s.Mzxid, s.Ctime, s.Mtime = d.I64(), d.I64(), d.I64(), d.I64()
	s.Version, s.Cversion, s.Aversion, s.Owner = d.I32(), d.I32(), d.I32(), d.I64()
	s.DataLength, s.NumChildren, s.Pzxid = d.I32(), d.I32(), d.I64()
	return s
}

// replyBytesMax bounds what a server may send in one frame.
const replyBytesMax = 64 << 20

// ReadFrame reads one frame and returns its body, which is the caller's.
func ReadFrame(r io.Reader) ([]byte, error) {
	var h [4]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, err
	}
	n := int32(binary.BigEndian.Uint32(h[:]))
	if n < 0 || n > replyBytesMax {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	return p, err
}
