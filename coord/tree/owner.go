package tree

import (
	"slices"

	"platter/coord/zk"
)

// What a node's owner says of it (EphemeralType): 0, nothing; a container; a node with a time to live; else the
// session whose end ends the node.
const (
	ownerContainer int64 = -1 << 63
	ownerTTL       int64 = -1 << 56 // the time to live stands below
	ttlMaxMs       int64 = 1<<40 - 1
)

func isTTL(owner int64) bool { return owner&ownerTTL == ownerTTL }

// ofSession reports whether a node is ephemeral: its owner is a session.
func ofSession(owner int64) bool { return owner != 0 && owner != ownerContainer && !isTTL(owner) }

func ttlMs(owner int64) int64 { return owner & ttlMaxMs }

// newOwner is the owner of what a create makes. Code says what is wrong with flags and time to live.
func newOwner(e *Entry, op zk.Op, q *zk.CreateRequest) (int64, zk.Code) {
	if q.Flags < 0 || q.Flags > zk.FlagTTLSequential {
		return 0, zk.BadArguments
	}
	ms := int64(-1)
	if op == zk.OpCreateTTL {
		ms = q.TTLMs
	}
	ttl := q.Flags == zk.FlagTTL || q.Flags == zk.FlagTTLSequential
	switch {
	case ttl && e.Options&TTLNodes == 0:
		return 0, zk.Unimplemented
	case ttl != (op == zk.OpCreateTTL), ttl && (ms <= 0 || ms > ttlMaxMs):
		return 0, zk.BadArguments
	case ttl:
		return ownerTTL | ms, zk.OK
	case op == zk.OpCreateContainer:
		return ownerContainer, zk.OK
	case q.Flags == zk.FlagEphemeral || q.Flags == zk.FlagEphemeral|zk.FlagSequential:
		return e.Session, zk.OK
	}
	return 0, zk.OK
}

func isSequential(flags int32) bool {
	return flags == zk.FlagSequential || flags == zk.FlagEphemeral|zk.FlagSequential || flags == zk.FlagTTLSequential
}

// adopt and disown keep what is known of nodes by their owner.
func (t *Tree) adopt(path string, owner int64) {
	switch {
	case owner == 0:
	case owner == ownerContainer || isTTL(owner):
		t.reaped[path] = struct{}{}
	case t.sessions[owner] != nil:
		t.sessions[owner].ephemerals[path] = struct{}{}
		t.ephemerals++
	}
}

func (t *Tree) disown(path string, owner int64) {
	switch {
	case owner == 0:
	case owner == ownerContainer || isTTL(owner):
		delete(t.reaped, path)
	case t.sessions[owner] != nil:
		delete(t.sessions[owner].ephemerals, path)
		t.ephemerals--
	}
}

// lookedAtOnce is how much of a long walk is done between two pauses.
const lookedAtOnce = 1000

// Reapable gives the containers and TTL nodes that are to go at a time (Unix milliseconds), sorted: empty
// containers that had children, or that never had any for neverUsedMs (0: these stay), and nodes without
// children that nobody has written to for their time to live (ContainerManager). pause is called again and again in a
// long walk: the tree may change in it.
func (t *Tree) Reapable(nowMs, neverUsedMs int64, pause func()) []string {
	var out []string
	looked := 0
	for path := range t.reaped {
		if looked++; looked%lookedAtOnce == 0 {
			if pause(); t.find(path) == nil {
				continue // it went meanwhile
			}
		}
		if t.find(path).reapable(nowMs, neverUsedMs) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

func (n *node) reapable(nowMs, neverUsedMs int64) bool {
	idleMs := nowMs - n.mtimeMs
	switch {
	case n.children.len() > 0:
		return false
	case isTTL(n.owner):
		return idleMs > ttlMs(n.owner)
	}
	return n.creates > 0 || neverUsedMs > 0 && idleMs > neverUsedMs
}

// deleteContainer removes what Reapable named, unless it has got children or a new lease since.
func (t *Tree) deleteContainer(e *Entry, path string) Result {
	n := t.find(path)
	switch {
	case n == nil:
		return Result{Err: zk.NoNode}
	case n.owner == 0 || ofSession(n.owner) || special(path):
		return Result{Err: zk.BadVersion}
	case n.children.len() > 0:
		return Result{Err: zk.NotEmpty}
	case isTTL(n.owner) && !n.reapable(e.TimeMs, 0):
		return Result{Err: zk.BadVersion}
	}
	t.unlink(e, path)
	return Result{}
}
