package tree

import (
	"strings"

	"platter/coord/zk"
)

// meta is a node's numbers. The visible cversion is 2*creates - children: that is how one count gives
// both the sequence suffix and a number that moves with every create and delete.
type meta struct {
	czxid, mzxid, pzxid        int64
	ctimeMs, mtimeMs           int64
	owner                      int64 // see owner.go
	version, aversion, creates int32
	below                      int32 // nodes below this one
}

// node is one znode. It belongs to the generation in which it was made: a node of an earlier
// generation may be shared with a Capture, and is copied before it changes.
type node struct {
	meta
	gen      uint64
	name     string // without its path; the root's is empty
	acl      *acl
	data     []byte // never changed in place
	children *children
}

// stat is what clients see: of an owner only a session (DataNode.copyStat).
func (n *node) stat() zk.Stat {
	owner := n.owner
	if !ofSession(owner) {
		owner = 0
	}
	return zk.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctimeMs, Mtime: n.mtimeMs,
		Version: n.version, Cversion: 2*n.creates - int32(n.children.len()), Aversion: n.aversion,
		EphemeralOwner: owner, DataLength: int32(len(n.data)), NumChildren: int32(n.children.len()),
		Pzxid: n.pzxid,
	}
}

// next splits the first name off a path without its leading slash.
func next(rest string) (name, after string, more bool) { return strings.Cut(rest, "/") }

// find looks a path up; "" is the root too, as in ZooKeeper. It validates nothing: a bad path is a
// missing node.
func (t *Tree) find(path string) *node {
	if path == "" || path == "/" {
		return t.root
	}
	if path[0] != '/' {
		return nil
	}
	n, rest, more := t.root, path[1:], true
	for more && n != nil {
		var name string
		name, rest, more = next(rest)
		n = n.children.get(name)
	}
	return n
}

// own is find for a change: every node on the way is made this generation's, and counts so many more below it. The
// path exists.
func (t *Tree) own(path string, below int32) *node {
	if t.root.gen != t.gen {
		t.root = t.copyNode(t.root)
	}
	t.root.below += below
	if path == "" || path == "/" {
		return t.root
	}
	n, rest, more := t.root, path[1:], true
	for more {
		var name string
		name, rest, more = next(rest)
		child := n.children.get(name)
		if child.gen != t.gen {
			child = t.copyNode(child)
			n.children = n.children.put(t.gen, child)
		}
		child.below += below
		n = child
	}
	return n
}

func (t *Tree) copyNode(n *node) *node {
	c := *n
	c.gen = t.gen
	return &c
}

// split gives a path's parent ("" for the root) and last name.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}
