package tree

import (
	"errors"
	"fmt"

	"platter/coord/zk"
)

// ErrCorrupt: the bytes are no entry or no snapshot of a tree.
var ErrCorrupt = errors.New("corrupt tree data")

// Entry is one proposed change. Its bytes, as they stand in the log:
//
//	zxid i64 | timeMs i64 | session i64 | options u16 | op i16 | auth vector of {scheme, id} | body, to the end
//
// Body is the request's record as it came from the client. For OpCreateSession it is a SessionBody, for
// OpCloseSession it is empty, for OpDeleteContainer, which the server proposes by itself (session 0), it is the
// path. OpError is a request that failed before it was proposed: it takes a zxid, and is answered with
// the code (i32) in the body. Where op is negative the options are its sign, and mean nothing.
type Entry struct {
	Zxid    int64
	TimeMs  int64 // Unix milliseconds
	Session int64
	Options Options
	Op      zk.Op
	Auth    []zk.ID // whom the session had authenticated as, beside world:anyone
	Body    []byte
}

// Options are settings of the proposer that decide what becomes of an entry.
type Options uint16

// Options.
const (
	TTLNodes     Options = 1 << iota // TTL nodes may be made (extendedTypesEnabled)
	EnforceQuota                     // hard limits of quotas are refusals (enforceQuota)
)

// Append adds the entry's bytes.
func (e *Entry) Append(b []byte) []byte {
	b = zk.AppendInt64(b, e.Zxid)
	b = zk.AppendInt64(b, e.TimeMs)
	b = zk.AppendInt64(b, e.Session)
	b = zk.AppendInt32(b, int32(e.Options)<<16|int32(uint16(e.Op)))
	if e.Op < 0 {
		copy(b[len(b)-4:], []byte{0xff, 0xff})
	}
	b = zk.AppendIDs(b, e.Auth)
	return append(b, e.Body...)
}

// DecodeEntry reads an entry that fills b; Body is borrowed from it. The body is checked too.
func DecodeEntry(b []byte) (Entry, error) {
	d := zk.NewDecoder(b)
	e := Entry{Zxid: d.Int64(), TimeMs: d.Int64(), Session: d.Int64()}
	word := d.Int32()
	if e.Op = zk.Op(int16(word)); e.Op >= 0 {
		e.Options = Options(uint32(word) >> 16)
	}
	e.Auth, e.Body = d.IDs(), d.Rest()
	if d.Err() != nil {
		return Entry{}, fmt.Errorf("%w: entry of %d bytes: %w", ErrCorrupt, len(b), d.Err())
	}
	if _, err := parse(e.Op, e.Body); err != nil {
		return Entry{}, fmt.Errorf("%w: entry %#x, operation %d: %w", ErrCorrupt, e.Zxid, e.Op, err)
	}
	return e, nil
}

// SessionBody is OpCreateSession's body.
type SessionBody struct {
	TimeoutMs int32
	Password  []byte
}

// Append adds the record.
func (s SessionBody) Append(b []byte) []byte {
	return zk.AppendBuffer(zk.AppendInt32(b, s.TimeoutMs), s.Password)
}

// FailedBody is OpError's body.
func FailedBody(code zk.Code) []byte { return zk.AppendInt32(nil, int32(code)) }

// command is a decoded body.
type command struct {
	one     zk.MultiOp // create family, delete, setData
	multi   zk.MultiRequest
	acl     zk.SetACLRequest
	session SessionBody
	path    string  // deleteContainer
	failed  zk.Code // error
}

// errNotProposable: no entry carries this operation.
var errNotProposable = errors.New("not an operation that changes the tree")

// CheckBody reports whether body is op's record; the server asks before it proposes. The error wraps
// zk.ErrMalformed, or says that op changes nothing.
func CheckBody(op zk.Op, body []byte) error {
	_, err := parse(op, body)
	return err
}

func parse(op zk.Op, body []byte) (c command, err error) {
	d := zk.NewDecoder(body)
	c.one.Op = op
	switch op {
	case zk.OpCreate, zk.OpCreate2, zk.OpCreateContainer, zk.OpCreateTTL:
		c.one.Create.Decode(&d, op)
	case zk.OpDelete, zk.OpCheck:
		c.one.Target.Decode(&d)
	case zk.OpSetData:
		c.one.Set.Decode(&d)
	case zk.OpSetACL:
		c.acl.Decode(&d)
	case zk.OpMulti:
		c.multi.Decode(&d)
	case zk.OpCreateSession:
		c.session = SessionBody{d.Int32(), d.Buffer()}
	case zk.OpCloseSession:
	case zk.OpDeleteContainer:
		c.path = d.Path()
	case zk.OpError:
		c.failed = zk.Code(d.Int32())
	default:
		return c, errNotProposable
	}
	return c, d.Err()
}
