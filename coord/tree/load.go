package tree

import (
	"bytes"
	"fmt"
	"strings"

	"platter/coord/zk"
)

// Loader builds a tree from a snapshot's chunks.
type Loader struct {
	t      *Tree
	acls   []*acl
	path   []*node  // the last node and those above it
	names  []string // their names
	headed bool
	ended  bool
}

// NewLoader is ready for the first chunk.
func NewLoader() *Loader {
	return &Loader{t: empty()}
}

// Chunk takes the next chunk; it keeps nothing of b. An error is ErrCorrupt.
func (l *Loader) Chunk(b []byte) error {
	d := zk.NewDecoder(b)
	for len(d.Rest()) > 0 {
		kind := d.Byte()
		if err := l.record(kind, &d); err != nil {
			return err
		}
		if d.Err() != nil {
			return corrupt("record of kind %d: %v", kind, d.Err())
		}
	}
	return nil
}

// Finish gives the tree once the last chunk was taken.
func (l *Loader) Finish() (*Tree, error) {
	if !l.ended || l.t.root == nil {
		return nil, corrupt("the end record or the root is missing")
	}
	return l.t, nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: snapshot: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func (l *Loader) record(kind byte, d *zk.Decoder) error {
	if l.ended || l.headed == (kind == recHead) {
		return corrupt("record of kind %d out of place", kind)
	}
	switch kind {
	case recHead:
		l.headed = true
		l.t.zxid, l.t.lastSession = d.Int64(), d.Int64()
	case recSession:
		s := &session{ephemerals: map[string]struct{}{}}
		id := d.Int64()
		s.timeoutMs, s.password = d.Int32(), bytes.Clone(d.Buffer())
		l.t.sessions[id] = s
	case recACL:
		l.acls = append(l.acls, l.t.intern(d.ACLs()))
	case recNode:
		return l.node(d)
	case recEnd:
		l.ended = true
		sessions, nodes := d.Int64(), d.Int64()
		if sessions != int64(len(l.t.sessions)) || nodes != int64(l.t.nodeCount) {
			return corrupt("%d sessions and %d nodes, the end record says %d and %d",
				len(l.t.sessions), l.t.nodeCount, sessions, nodes)
		}
	default:
		return corrupt("unknown record kind %d", kind)
	}
	return nil
}

func (l *Loader) node(d *zk.Decoder) error {
	depth, name, _, number := int(d.Int32()), d.String(), d.Int32(), int(d.Int32())
	n := &node{name: name}
	for _, v := range [...]*int64{&n.czxid, &n.mzxid, &n.pzxid, &n.ctimeMs, &n.mtimeMs, &n.owner} {
		*v = d.Int64()
	}
	for _, v := range [...]*int32{&n.version, &n.aversion, &n.creates} {
		*v = d.Int32()
	}
	n.data = bytes.Clone(d.Buffer())
	switch {
	case d.Err() != nil:
		return corrupt("node: %v", d.Err())
	case depth < 0 || depth > len(l.path) || depth == 0 && l.t.root != nil:
		return corrupt("node %q at depth %d below a node at depth %d", name, depth, len(l.path)-1)
	case (depth == 0) != (name == "") || strings.Contains(name, "/"):
		return corrupt("node name %q at depth %d", name, depth)
	case number < 0 || number >= len(l.acls):
		return corrupt("node %q: ACL %d of %d", name, number, len(l.acls))
	}
	n.acl = l.acls[number]
	l.path, l.names = append(l.path[:depth], n), append(l.names[:depth], name)
	if depth == 0 {
		l.t.root = n
		l.t.countRoot()
		return nil
	}
	parent := l.path[depth-1]
	if parent.children.get(name) != nil {
		return corrupt("node %q twice", name)
	}
	if ofSession(n.owner) && l.t.sessions[n.owner] == nil {
		return corrupt("node %q belongs to session %#x, which is not there", name, n.owner)
	}
	for _, above := range l.path[:depth] {
		above.below++
	}
	l.t.attach(parent, strings.Join(l.names[:depth+1], "/"), n)
	return nil
}
