package tree

import (
	"fmt"
	"iter"
	"maps"

	"platter/coord/zk"
)

// The nodes of a fresh tree.
const (
	zookeeperPath = "/zookeeper"
	quotaPath     = "/zookeeper/quota"
	configPath    = "/zookeeper/config"
)

// Tree is the whole state: nodes and sessions, as of one zxid.
type Tree struct {
	zxid        int64
	lastSession int64 // the highest session id ever made
	root        *node
	gen         uint64
	nodeCount   int
	acls        map[string]*acl
	sessions    map[int64]*session
	changes     []Change
	undo        []undo // of the multi that is under way
}

type session struct {
	timeoutMs  int32
	password   []byte
	ephemerals map[string]struct{}
}

// Change is one thing that watches tell of.
type Change struct {
	Type zk.EventType // EventCreated, EventDeleted or EventDataChanged
	Path string

	acl, parent *acl // of the node and its parent; nil: open to all
}

// Result is what a client is answered. With Err not OK nothing else counts.
type Result struct {
	Err   zk.Code
	Path  string           // of a create
	Stat  zk.Stat          // of a create or set
	Multi zk.MultiResponse // of a multi
}

// New is a fresh tree: the root and ZooKeeper's own three nodes, at zxid 0.
func New() *Tree {
	t := &Tree{acls: map[string]*acl{}, sessions: map[int64]*session{}}
	open := t.internAny(zk.WorldAnyone())
	fresh := func() *node {
		t.nodeCount++
		return &node{acl: open, data: []byte{}}
	}
	t.root = fresh()
	zoo := fresh()
	t.root.put("zookeeper", zoo)
	zoo.put("quota", fresh())
	config := fresh()
	config.acl = t.internAny([]zk.ACL{{Perms: zk.PermRead, ID: zk.ID{Scheme: "world", ID: "anyone"}}})
	config.aversion = -1
	zoo.put("config", config)
	return t
}

// Zxid is the last applied entry's.
func (t *Tree) Zxid() int64 { return t.zxid }

// NodeCount is the number of nodes, ZooKeeper's own included.
func (t *Tree) NodeCount() int { return t.nodeCount }

// Get reads a node. The data is the tree's: read only, but good for as long as the caller likes.
func (t *Tree) Get(path string) ([]byte, zk.Stat, zk.Code) {
	n, code := t.readable(path, zk.PermRead)
	if code != zk.OK {
		return nil, zk.Stat{}, code
	}
	return n.data, n.stat(), zk.OK
}

// Exists gives a node's Stat, or NoNode. It needs no permission.
func (t *Tree) Exists(path string) (zk.Stat, zk.Code) {
	n := t.find(path)
	if n == nil {
		return zk.Stat{}, zk.NoNode
	}
	return n.stat(), zk.OK
}

// Children gives a node's Stat and its Stat.NumChildren names, in no order, valid until the next Apply.
func (t *Tree) Children(path string) (iter.Seq[string], zk.Stat, zk.Code) {
	n, code := t.readable(path, zk.PermRead)
	if code != zk.OK {
		return nil, zk.Stat{}, code
	}
	return maps.Keys(n.children), n.stat(), zk.OK
}

// ACL gives a node's access list, the tree's own: read only.
func (t *Tree) ACL(path string) ([]zk.ACL, zk.Stat, zk.Code) {
	n, code := t.readable(path, zk.PermRead|zk.PermAdmin)
	if code != zk.OK {
		return nil, zk.Stat{}, code
	}
	return n.acl.list, n.stat(), zk.OK
}

func (t *Tree) readable(path string, perm int32) (*node, zk.Code) {
	n := t.find(path)
	if n == nil {
		return nil, zk.NoNode
	}
	if !n.acl.allows(perm) {
		return nil, zk.NoAuth
	}
	return n, zk.OK
}

// Session tells a session's timeout and password (the tree's, read only).
func (t *Tree) Session(id int64) (timeoutMs int32, password []byte, ok bool) {
	s := t.sessions[id]
	if s == nil {
		return 0, nil, false
	}
	return s.timeoutMs, s.password, true
}

// Sessions gives every session's id and timeout in milliseconds, in no order.
func (t *Tree) Sessions() iter.Seq2[int64, int32] {
	return func(yield func(int64, int32) bool) {
		for id, s := range t.sessions {
			if !yield(id, s.timeoutMs) {
				return
			}
		}
	}
}

// LastSession is the highest session id that was ever made: new ones lie above it.
func (t *Tree) LastSession() int64 { return t.lastSession }

// Ephemerals gives a session's ephemeral paths, in no order.
func (t *Tree) Ephemerals(id int64) iter.Seq[string] {
	s := t.sessions[id]
	if s == nil {
		return func(func(string) bool) {}
	}
	return maps.Keys(s.ephemerals)
}

// Apply takes the next entry (its zxid is one above Zxid). The changes are valid until the next Apply.
// A malformed body, which DecodeEntry and CheckBody would have refused, is answered with Marshalling.
func (t *Tree) Apply(e *Entry) (Result, []Change) {
	if e.Zxid != t.zxid+1 {
		panic(fmt.Sprintf("tree: entry %#x applied after %#x", e.Zxid, t.zxid))
	}
	t.zxid = e.Zxid
	t.changes = t.changes[:0]
	c, err := parse(e.Op, e.Body)
	if err != nil {
		return Result{Err: zk.Marshalling}, nil
	}
	r := t.apply(e, &c)
	return r, t.changes
}

func (t *Tree) apply(e *Entry, c *command) Result {
	if e.Op == zk.OpCreateSession {
		return t.createSession(e, c.session)
	}
	if t.sessions[e.Session] == nil {
		return Result{Err: zk.SessionExpired}
	}
	switch e.Op {
	case zk.OpCloseSession:
		return t.closeSession(e)
	case zk.OpMulti:
		return t.applyMulti(e, &c.multi)
	case zk.OpSetACL:
		return t.setACL(e, &c.acl)
	}
	r := t.applyOne(e, &c.one)
	t.undo = t.undo[:0]
	return Result{Err: r.Err, Path: r.Path, Stat: r.Stat}
}
