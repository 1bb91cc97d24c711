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
	quotaPath     = zk.QuotaPath
	configPath    = "/zookeeper/config"
)

// Tree is the whole state: nodes and sessions, as of one zxid.
type Tree struct {
	zxid        int64
	lastSession int64 // the highest session id ever made
	root        *node
	gen         uint64
	nodeCount   int
	dataBytes   int64 // of all paths and data
	acls        map[string]*acl
	sessions    map[int64]*session
	reaped      map[string]struct{} // containers and TTL nodes
	ephemerals  int
	quotas      quotas
	changes     []Change
	undo        []undo // of the multi that is under way
	over        string // a limit of a quota that the entry under way went beyond
}

type session struct {
	timeoutMs  int32
	password   []byte
	ephemerals map[string]struct{}
}

// Change is one thing that watches tell of.
type Change struct {
	Type  zk.EventType // EventCreated, EventDeleted or EventDataChanged
	Path  string
	Bytes int // of the data that was written

	acl, parent *acl // of the node and its parent; nil: open to all
}

// Result is what a client is answered. With Err not OK nothing else counts.
type Result struct {
	Err   zk.Code
	Path  string           // of a create
	Stat  zk.Stat          // of a create or set
	Multi zk.MultiResponse // of a multi
	// OverQuota, when not empty, says which limit was exceeded by what was done all the same.
	OverQuota string
}

func empty() *Tree {
	return &Tree{
		acls: map[string]*acl{}, sessions: map[int64]*session{}, reaped: map[string]struct{}{},
		quotas: quotas{limited: map[string]struct{}{}, lengths: lengths{}},
	}
}

// New is a fresh tree: the root and ZooKeeper's own three nodes, at zxid 0.
func New() *Tree {
	t := empty()
	fresh := func(path string, perms, aversion int32) {
		n := &node{acl: t.intern([]zk.ACL{{Perms: perms, ID: zk.ID{Scheme: "world", ID: "anyone"}}}), data: []byte{}}
		n.aversion = aversion
		if path == "/" {
			t.root = n
			t.countRoot()
			return
		}
		parent, name := split(path)
		n.name = name
		t.attach(t.own(parent, 1), path, n)
	}
	fresh("/", zk.PermAll, 0)
	fresh(zookeeperPath, zk.PermAll, 0)
	fresh(quotaPath, zk.PermAll, 0)
	fresh(configPath, zk.PermRead, -1)
	return t
}

func (t *Tree) countRoot() {
	t.nodeCount++
	t.dataBytes += int64(len("/") + len(t.root.data))
	t.take(t.root.acl)
}

// Zxid is the last applied entry's.
func (t *Tree) Zxid() int64 { return t.zxid }

// NodeCount is the number of nodes, ZooKeeper's own included.
func (t *Tree) NodeCount() int { return t.nodeCount }

// DataBytes is how much all paths and data take (zk_approximate_data_size).
func (t *Tree) DataBytes() int64 { return t.dataBytes }

// EphemeralCount is the number of ephemeral nodes of all sessions.
func (t *Tree) EphemeralCount() int { return t.ephemerals }

// Get reads a node for who, the identities of the client. The data is the tree's: read only, but good for as
// long as the caller likes.
func (t *Tree) Get(path string, who []zk.ID) ([]byte, zk.Stat, zk.Code) {
	n, code := t.readable(path, zk.PermRead, who)
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
func (t *Tree) Children(path string, who []zk.ID) (iter.Seq[string], zk.Stat, zk.Code) {
	n, code := t.readable(path, zk.PermRead, who)
	if code != zk.OK {
		return nil, zk.Stat{}, code
	}
	return n.children.names(), n.stat(), zk.OK
}

// ChildrenBytes is about what Children will give on the wire: 0 of a missing node.
func (t *Tree) ChildrenBytes(path string) int64 {
	n := t.find(path)
	if n == nil {
		return 0
	}
	const lengthBytes = 4
	return int64(n.children.allNameBytes() + lengthBytes*n.children.len())
}

// AllChildrenNumber is how many nodes there are below path.
func (t *Tree) AllChildrenNumber(path string, who []zk.ID) (int, zk.Code) {
	n, code := t.readable(path, zk.PermRead, who)
	if code != zk.OK {
		return 0, code
	}
	return int(n.below), zk.OK
}

// ACL gives a node's access list, read only: the tree's own, or to who may not change it one without password
// hashes.
func (t *Tree) ACL(path string, who []zk.ID) ([]zk.ACL, zk.Stat, zk.Code) {
	n, code := t.readable(path, zk.PermRead|zk.PermAdmin, who)
	if code != zk.OK {
		return nil, zk.Stat{}, code
	}
	if !n.acl.allows(zk.PermAdmin, who) {
		return masked(n.acl.list), n.stat(), zk.OK
	}
	return n.acl.list, n.stat(), zk.OK
}

func (t *Tree) readable(path string, perm int32, who []zk.ID) (*node, zk.Code) {
	n := t.find(path)
	if n == nil {
		return nil, zk.NoNode
	}
	if !n.acl.allows(perm, who) {
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

// HasSession reports whether a session is there.
func (t *Tree) HasSession(id int64) bool { return t.sessions[id] != nil }

// Sessions gives every session's id and timeout in milliseconds, in no order. As with Ephemerals, entries may be applied
// while it is walked, between two steps: what comes or goes meanwhile is given or not.
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
	t.over = ""
	r := t.apply(e, &c)
	t.undo = t.undo[:0]
	t.settleQuotas()
	if r.Err == zk.OK {
		r.OverQuota = t.over
	}
	return r, t.changes
}

func (t *Tree) apply(e *Entry, c *command) Result {
	switch e.Op {
	case zk.OpCreateSession:
		return t.createSession(e, c.session)
	case zk.OpDeleteContainer:
		return t.deleteContainer(e, c.path)
	}
	if t.sessions[e.Session] == nil {
		return Result{Err: zk.SessionExpired}
	}
	switch e.Op {
	case zk.OpError:
		return Result{Err: c.failed}
	case zk.OpCloseSession:
		return t.closeSession(e)
	case zk.OpMulti:
		return t.applyMulti(e, &c.multi)
	case zk.OpSetACL:
		return t.setACL(e, &c.acl)
	}
	r := t.applyOne(e, &c.one)
	return Result{Err: r.Err, Path: r.Path, Stat: r.Stat}
}
