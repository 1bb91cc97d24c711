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
	case zk.OpCreate, zk.OpCreate2:
		r.Path, r.Stat, r.Err = t.create(e, &o.Create)
	case zk.OpDelete:
		r.Err = t.delete(e, &o.Target)
	case zk.OpSetData:
		r.Stat, r.Err = t.setData(e, &o.Set)
	case zk.OpCheck:
		r.Err = t.check(&o.Target)
	default:
		r.Err = zk.Unimplemented
	}
	return r
}

func (t *Tree) create(e *Entry, q *zk.CreateRequest) (string, zk.Stat, zk.Code) {
	if q.Flags < 0 || q.Flags > zk.FlagEphemeral|zk.FlagSequential {
		return "", zk.Stat{}, zk.BadArguments
	}
	if !strings.Contains(q.Path, "/") || strings.Contains(q.Path, "\x00") {
		return "", zk.Stat{}, zk.BadArguments
	}
	list := t.intern(q.ACL)
	if list == nil {
		return "", zk.Stat{}, zk.InvalidACL
	}
	parentPath, _ := split(q.Path)
	parent := t.find(parentPath)
	switch {
	case parent == nil:
		return "", zk.Stat{}, zk.NoNode
	case !parent.acl.allows(zk.PermCreate):
		return "", zk.Stat{}, zk.NoAuth
	}
	path := q.Path
	if q.Flags&zk.FlagSequential != 0 {
		path += fmt.Sprintf(sequenceFormat, parent.creates)
	}
	switch {
	case !ValidPath(path):
		return "", zk.Stat{}, zk.BadArguments
	case t.find(path) != nil:
		return "", zk.Stat{}, zk.NodeExists
	case parent.owner != 0:
		return "", zk.Stat{}, zk.NoChildrenForEphemerals
	}
	n := &node{gen: t.gen, acl: list, data: bytes.Clone(q.Data)}
	n.czxid, n.mzxid, n.pzxid = e.Zxid, e.Zxid, e.Zxid
	n.ctimeMs, n.mtimeMs = e.TimeMs, e.TimeMs
	if q.Flags&zk.FlagEphemeral != 0 {
		n.owner = e.Session
	}
	t.link(e, path, n)
	return path, n.stat(), zk.OK
}

// link adds a new node under its parent, which exists.
func (t *Tree) link(e *Entry, path string, n *node) {
	parentPath, name := split(path)
	parent := t.own(parentPath)
	t.remember(undo{path: path, parent: parent, parentMeta: parent.meta})
	parent.put(name, n)
	parent.creates++
	parent.pzxid = e.Zxid
	t.nodeCount++
	if n.owner != 0 {
		t.sessions[n.owner].ephemerals[path] = struct{}{}
	}
	t.changed(zk.EventCreated, path, n, parent)
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
	case !parent.acl.allows(zk.PermDelete):
		return zk.NoAuth
	case n == nil:
		return zk.NoNode
	case q.Version != -1 && q.Version != n.version:
		return zk.BadVersion
	case len(n.children) > 0:
		return zk.NotEmpty
	}
	t.unlink(e, q.Path)
	return zk.OK
}

// unlink removes a node, which exists and has no children.
func (t *Tree) unlink(e *Entry, path string) {
	parentPath, name := split(path)
	parent := t.own(parentPath)
	n := parent.children[name]
	t.remember(undo{path: path, node: n, nodeMeta: n.meta, data: n.data, parent: parent, parentMeta: parent.meta})
	delete(parent.children, name)
	parent.pzxid = e.Zxid
	t.nodeCount--
	if s := t.sessions[n.owner]; s != nil {
		delete(s.ephemerals, path)
	}
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
	case !n.acl.allows(zk.PermWrite):
		return zk.Stat{}, zk.NoAuth
	case q.Version != -1 && q.Version != n.version:
		return zk.Stat{}, zk.BadVersion
	}
	n = t.own(q.Path)
	t.remember(undo{path: q.Path, node: n, nodeMeta: n.meta, data: n.data})
	n.data = bytes.Clone(q.Data)
	n.version++
	n.mzxid, n.mtimeMs = e.Zxid, e.TimeMs
	t.changed(zk.EventDataChanged, q.Path, n, n)
	return n.stat(), zk.OK
}

func (t *Tree) check(q *zk.CheckRequest) zk.Code {
	if !ValidPath(q.Path) {
		return zk.BadArguments
	}
	n := t.find(q.Path)
	switch {
	case n == nil:
		return zk.NoNode
	case !n.acl.allows(zk.PermRead):
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
	list, n := t.intern(q.ACL), t.find(q.Path)
	switch {
	case list == nil:
		return Result{Err: zk.InvalidACL}
	case n == nil:
		return Result{Err: zk.NoNode}
	case !n.acl.allows(zk.PermAdmin):
		return Result{Err: zk.NoAuth}
	case q.Version != -1 && q.Version != n.aversion:
		return Result{Err: zk.BadVersion}
	}
	n = t.own(q.Path)
	n.acl = list
	n.aversion++
	return Result{Stat: n.stat()}
}

func (t *Tree) changed(typ zk.EventType, path string, n, parent *node) {
	t.changes = append(t.changes, Change{typ, path, n.acl, parent.acl})
}
