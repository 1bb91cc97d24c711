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
//	zxid i64 | timeMs i64 | session i64 | op i32 | auth vector of {scheme, id} | body, to the end
//
// Body is the request's record as it came from the client; for OpCreateSession it is a SessionBody,
// for OpCloseSession it is empty.
type Entry struct {
	Zxid    int64
	TimeMs  int64 // Unix milliseconds
	Session int64
	Op      zk.Op
	Auth    []zk.ID // whom the session had authenticated as, beside world:anyone
	Body    []byte
}

// Append adds the entry's bytes.
func (e *Entry) Append(b []byte) []byte {
	b = zk.AppendInt64(b, e.Zxid)
	b = zk.AppendInt64(b, e.TimeMs)
	b = zk.AppendInt64(b, e.Session)
	b = zk.AppendInt32(b, int32(e.Op))
	b = zk.AppendIDs(b, e.Auth)
	return append(b, e.Body...)
}

// DecodeEntry reads an entry that fills b; Body is borrowed from it. The body is checked too.
func DecodeEntry(b []byte) (Entry, error) {
	d := zk.NewDecoder(b)
	e := Entry{Zxid: d.Int64(), TimeMs: d.Int64(), Session: d.Int64(), Op: zk.Op(d.Int32()), Auth: d.IDs()}
	e.Body = d.Rest()
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

// command is a decoded body.
type command struct {
	one     zk.MultiOp // create family, delete, setData
	multi   zk.MultiRequest
	acl     zk.SetACLRequest
	session SessionBody
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
	case zk.OpCreate, zk.OpCreate2:
		c.one.Create.Decode(&d, op)
	case zk.OpDelete:
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
	default:
		return c, errNotProposable
	}
	return c, d.Err()
}
