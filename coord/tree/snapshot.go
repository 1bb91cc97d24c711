package tree

import (
	"cmp"
	"slices"

	"platter/coord/zk"
)

// A snapshot is a sequence of records, cut into chunks at record boundaries. The same state gives the
// same bytes, whatever way led to it. A record is a kind byte and:
//
//	recHead     zxid i64 | last session id i64
//	recSession  id i64 | timeout ms i32 | password buffer           (ids ascending)
//	recACL      ACL vector        (numbered from 0; stands before the first node that has it)
//	recNode     depth i32 | name ustring | children i32 | acl number i32
//	            czxid, mzxid, pzxid, ctime, mtime, owner i64
//	            version, aversion, creates i32 | data buffer        (depth first, names ascending)
//	recEnd      session count i64 | node count i64
const (
	recHead byte = 1 + iota
	recSession
	recACL
	recNode
	recEnd
)

// chunkBytes is about what a chunk of a snapshot holds.
const chunkBytes = 256 << 10

// Capture is the tree as of one entry. It is immutable, and costs nothing to take: the tree copies
// what it changes afterwards.
type Capture struct {
	zxid        int64
	lastSession int64
	root        *node
	nodeCount   int
	sessions    []capturedSession
}

type capturedSession struct {
	id        int64
	timeoutMs int32
	password  []byte
}

// Capture takes the state as of Zxid.
func (t *Tree) Capture() *Capture {
	c := &Capture{zxid: t.zxid, lastSession: t.lastSession, root: t.root, nodeCount: t.nodeCount}
	for id, s := range t.sessions {
		c.sessions = append(c.sessions, capturedSession{id, s.timeoutMs, s.password})
	}
	slices.SortFunc(c.sessions, func(a, b capturedSession) int { return cmp.Compare(a.id, b.id) })
	t.gen++
	return c
}

// Zxid is the last entry that the capture holds.
func (c *Capture) Zxid() int64 { return c.zxid }

// Encode emits the snapshot chunk by chunk; a chunk is emit's only until it returns.
func (c *Capture) Encode(emit func(chunk []byte) error) error {
	e := encoder{emit: emit, acls: map[*acl]int32{}}
	e.buf = zk.AppendInt64(zk.AppendInt64(append(e.buf, recHead), c.zxid), c.lastSession)
	for _, s := range c.sessions {
		e.buf = zk.AppendInt64(append(e.buf, recSession), s.id)
		e.buf = zk.AppendBuffer(zk.AppendInt32(e.buf, s.timeoutMs), s.password)
		if err := e.spill(); err != nil {
			return err
		}
	}
	if err := e.nodes(c.root); err != nil {
		return err
	}
	e.buf = zk.AppendInt64(append(e.buf, recEnd), int64(len(c.sessions)))
	e.buf = zk.AppendInt64(e.buf, int64(c.nodeCount))
	return emit(e.buf)
}

type encoder struct {
	emit func([]byte) error
	buf  []byte
	acls map[*acl]int32
}

func (e *encoder) spill() error {
	if len(e.buf) < chunkBytes {
		return nil
	}
	err := e.emit(e.buf)
	e.buf = e.buf[:0]
	return err
}

// level is a node's children on the way down: a path may be too deep for recursion.
type level []*node // that are left to do

func (e *encoder) nodes(root *node) error {
	e.node(0, root)
	levels := []level{root.children.sorted()}
	for len(levels) > 0 {
		at := &levels[len(levels)-1]
		if len(*at) == 0 {
			levels = levels[:len(levels)-1]
			continue
		}
		n := (*at)[0]
		*at = (*at)[1:]
		e.node(len(levels), n)
		if err := e.spill(); err != nil {
			return err
		}
		if n.children.len() > 0 {
			levels = append(levels, n.children.sorted())
		}
	}
	return nil
}

func (e *encoder) node(depth int, n *node) {
	number, known := e.acls[n.acl]
	if !known {
		number = int32(len(e.acls))
		e.acls[n.acl] = number
		e.buf = zk.AppendACLs(append(e.buf, recACL), n.acl.list)
	}
	b := zk.AppendInt32(append(e.buf, recNode), int32(depth))
	b = zk.AppendInt32(zk.AppendString(b, n.name), int32(n.children.len()))
	b = zk.AppendInt32(b, number)
	for _, v := range [...]int64{n.czxid, n.mzxid, n.pzxid, n.ctimeMs, n.mtimeMs, n.owner} {
		b = zk.AppendInt64(b, v)
	}
	for _, v := range [...]int32{n.version, n.aversion, n.creates} {
		b = zk.AppendInt32(b, v)
	}
	e.buf = zk.AppendBuffer(b, n.data)
}
