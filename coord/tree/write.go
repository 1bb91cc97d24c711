package tree

import (
	"bytes"
	"fmt"
	"strings"

	"platter/coord/zk"
)

// sequenceFormat is the suffix of a sequential node: its parent's count of creates so far.
const sequenceFormat = "%010d"

// applyOne does one create, delete, set or check, alone or inside a multi. The order of the checks is
// PrepRequestProcessor's: it decides which error a client sees.
func (t *Tree) applyOne(e *Entry, o *zk.MultiOp) zk.MultiResult {
	r := zk.MultiResult{Op: o.Op}
	switch o.Op {
	case zk.OpCreate, zk.OpCreate2, zk.OpCreateContainer, zk.OpCreateTTL:
		r.Path, r.Stat, r.Err = t.create(e, o.Op, &o.Create)
	case zk.OpDelete:
		r.Err = t.delete(e, &o.Target)
	case zk.OpSetData:
		r.Stat, r.Err = t.setData(e, &o.Set)
	case zk.OpCheck:
		r.Err = t.check(e, &o.Target)
	}
	return r
}

func (t *Tree) create(e *Entry, op zk.Op, q *zk.CreateRequest) (string, zk.Stat, zk.Code) {
	owner, code := newOwner(e, op, q)
	if code != zk.OK {
		return "", zk.Stat{}, code
	}
	if !strings.Contains(q.Path, "/") || strings.Contains(q.Path, "\x00") {
		return "", zk.Stat{}, zk.BadArguments
	}
	list := fixACL(q.ACL, e.Auth)
	if list == nil {
		return "", zk.Stat{}, zk.InvalidACL
	}
	parentPath, _ := split(q.Path)
	parent := t.find(parentPath)
	switch {
	case parent == nil:
		return "", zk.Stat{}, zk.NoNode
	case !parent.acl.allows(zk.PermCreate, e.Auth):
		return "", zk.Stat{}, zk.NoAuth
	}
	path := q.Path
	if isSequential(q.Flags) {
		path += fmt.Sprintf(sequenceFormat, parent.creates)
	}
	switch {
	case !ValidPath(path):
		return "", zk.Stat{}, zk.BadArguments
	case t.find(path) != nil:
		return "", zk.Stat{}, zk.NodeExists
	case ofSession(parent.owner):
		return "", zk.Stat{}, zk.NoChildrenForEphemerals
	}
	if code := t.checkQuota(e, path, int64(len(q.Data)), 1); code != zk.OK {
		return "", zk.Stat{}, code
	}
	_, name := split(path)
	n := &node{gen: t.gen, name: strings.Clone(name), acl: t.intern(list), data: bytes.Clone(q.Data)}
	n.czxid, n.mzxid, n.pzxid = e.Zxid, e.Zxid, e.Zxid
	n.ctimeMs, n.mtimeMs = e.TimeMs, e.TimeMs
	n.owner = owner
	t.link(e, path, n)
	return path, n.stat(), zk.OK
}

// link adds a new node under its parent, which exists.
func (t *Tree) link(e *Entry, path string, n *node) {
	parentPath, _ := split(path)
	parent := t.own(parentPath, 1)
	t.remember(undo{path: path, parent: parent, parentMeta: parent.meta})
	t.attach(parent, path, n)
	parent.creates++
	parent.pzxid = e.Zxid
	t.quotaCreated(path, n)
	t.changed(zk.EventCreated, path, n, parent)
}

// attach puts a node into the tree, and detach takes it out: the children of its parent, and all that is counted but
// for what own counts.
func (t *Tree) attach(parent *node, path string, n *node) {
	parent.children = parent.children.put(t.gen, n)
	t.nodeCount++
	t.dataBytes += int64(len(path) + len(n.data))
	t.take(n.acl)
	t.adopt(path, n.owner)
	t.quotaLinked(path)
}

func (t *Tree) detach(parent *node, path, name string) *node {
	n := parent.children.get(name)
	parent.children = parent.children.remove(t.gen, name)
	t.nodeCount--
	t.dataBytes -= int64(len(path) + len(n.data))
	t.drop(n.acl)
	t.disown(path, n.owner)
	t.quotaUnlinked(path)
	return n
}

func (t *Tree) delete(e *Entry, q *zk.DeleteRequest) zk.Code {
	if !strings.Contains(q.Path, "/") || strings.Contains(q.Path, "\x00") || special(q.Path) {
		return zk.BadArguments
	}
	parentPath, _ := split(q.Path)
	parent, n := t.find(parentPath), t.find(q.Path)
	switch {
	case parent == nil:
		return zk.NoNode
	case !parent.acl.allows(zk.PermDelete, e.Auth):
		return zk.NoAuth
	case n == nil:
		return zk.NoNode
	case q.Version != -1 && q.Version != n.version:
		return zk.BadVersion
	case n.children.len() > 0:
		return zk.NotEmpty
	}
	t.unlink(e, q.Path)
	return zk.OK
}

// unlink removes a node, which exists and has no children.
func (t *Tree) unlink(e *Entry, path string) {
	parentPath, name := split(path)
	parent := t.own(parentPath, -1)
	parentMeta := parent.meta
	n := t.detach(parent, path, name)
	t.remember(undo{path: path, node: n, nodeMeta: n.meta, data: n.data, parent: parent, parentMeta: parentMeta})
	parent.pzxid = e.Zxid
	t.quotaMoved(path, -int64(len(n.data)), -1)
	t.changed(zk.EventDeleted, path, n, parent)
}

func (t *Tree) setData(e *Entry, q *zk.SetDataRequest) (zk.Stat, zk.Code) {
	if !ValidPath(q.Path) {
		return zk.Stat{}, zk.BadArguments
	}
	n := t.find(q.Path)
	switch {
	case n == nil:
		return zk.Stat{}, zk.NoNode
	case !n.acl.allows(zk.PermWrite, e.Auth):
		return zk.Stat{}, zk.NoAuth
	}
	grown := int64(len(q.Data) - len(n.data))
	if code := t.checkQuota(e, q.Path, grown, 0); code != zk.OK {
		return zk.Stat{}, code
	}
	if q.Version != -1 && q.Version != n.version {
		return zk.Stat{}, zk.BadVersion
	}
	n = t.own(q.Path, 0)
	t.remember(undo{path: q.Path, node: n, nodeMeta: n.meta, data: n.data})
	t.setBytes(n, bytes.Clone(q.Data))
	t.quotaMoved(q.Path, grown, 0)
	n.version++
	n.mzxid, n.mtimeMs = e.Zxid, e.TimeMs
	t.changed(zk.EventDataChanged, q.Path, n, n)
	return n.stat(), zk.OK
}

func (t *Tree) setBytes(n *node, data []byte) {
	t.dataBytes += int64(len(data) - len(n.data))
	n.data = data
}

func (t *Tree) check(e *Entry, q *zk.CheckRequest) zk.Code {
	if !ValidPath(q.Path) {
		return zk.BadArguments
	}
	n := t.find(q.Path)
	switch {
	case n == nil:
		return zk.NoNode
	case !n.acl.allows(zk.PermRead, e.Auth):
		return zk.NoAuth
	case q.Version != -1 && q.Version != n.version:
		return zk.BadVersion
	}
	return zk.OK
}

func (t *Tree) setACL(e *Entry, q *zk.SetACLRequest) Result {
	if !ValidPath(q.Path) {
		return Result{Err: zk.BadArguments}
	}
	list, n := fixACL(q.ACL, e.Auth), t.find(q.Path)
	switch {
	case list == nil:
		return Result{Err: zk.InvalidACL}
	case n == nil:
		return Result{Err: zk.NoNode}
	case !n.acl.allows(zk.PermAdmin, e.Auth):
		return Result{Err: zk.NoAuth}
	case q.Version != -1 && q.Version != n.aversion:
		return Result{Err: zk.BadVersion}
	}
	n = t.own(q.Path, 0)
	t.drop(n.acl)
	n.acl = t.intern(list)
	t.take(n.acl)
	n.aversion++
	return Result{Stat: n.stat()}
}

func (t *Tree) changed(typ zk.EventType, path string, n, parent *node) {
	c := Change{Type: typ, Path: path, acl: n.acl, parent: parent.acl}
	if typ != zk.EventDeleted {
		c.Bytes = len(n.data)
	}
	t.changes = append(t.changes, c)
}
