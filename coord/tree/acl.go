package tree

import (
	"slices"
	"strings"

	"platter/coord/zk"
)

// acl is a node's access list, shared by all nodes that have the same one.
type acl struct {
	list  []zk.ACL
	key   string // list's bytes
	world int32  // permissions of world:anyone
	nodes int    // how many have it
}

// Super is the identity that may do everything.
var Super = zk.ID{Scheme: "super"}

func isWorld(id zk.ID) bool { return id == zk.ID{Scheme: "world", ID: "anyone"} }

// aclBytesMax bounds a list once "auth" has been put in full: it grows with the identities of who asks.
const aclBytesMax = 1 << 20

// fixACL gives the list that a node gets when who asks for list (PrepRequestProcessor.fixupACL): doubles go, and
// "auth" becomes the identities that who has proved. Nil: the list is not acceptable.
func fixACL(list []zk.ACL, who []zk.ID) []zk.ACL {
	var out []zk.ACL
	bytes := 0
	add := func(a zk.ACL) {
		out = append(out, a)
		bytes += 12 + len(a.Scheme) + len(a.ID.ID)
	}
	seen := make(map[zk.ACL]struct{}, len(list))
	for _, a := range list {
		if _, double := seen[a]; double {
			continue
		}
		seen[a] = struct{}{}
		switch {
		case isWorld(a.ID), a.Scheme == "digest" && validDigest(a.ID.ID), a.Scheme == "ip" && validIP(a.ID.ID):
			add(a)
		case a.Scheme == "auth":
			proved := false
			for _, id := range who {
				if id.Scheme == "digest" {
					proved = true
					add(zk.ACL{Perms: a.Perms, ID: id})
				}
			}
			if !proved {
				return nil
			}
		default:
			return nil
		}
		if bytes > aclBytesMax {
			return nil
		}
	}
	return out
}

// validDigest: two parts at the colon, as Java's String.split counts them: an empty second one does not.
func validDigest(id string) bool {
	_, hash, ok := strings.Cut(id, ":")
	hash = strings.TrimRight(hash, ":")
	return ok && hash != "" && !strings.Contains(hash, ":")
}

// intern gives the one acl of this list, for a node that is to have it.
func (t *Tree) intern(list []zk.ACL) *acl {
	var short [64]byte
	key := zk.AppendACLs(short[:0], list)
	if a := t.acls[string(key)]; a != nil {
		return a
	}
	a := &acl{list: list, key: string(key)}
	for _, e := range list {
		if isWorld(e.ID) {
			a.world |= e.Perms
		}
	}
	return a
}

// take and drop count the nodes that have a. A list that no node has is forgotten, or clients could fill
// memory with them.
func (t *Tree) take(a *acl) {
	if a.nodes++; a.nodes == 1 {
		t.acls[a.key] = a
	}
}

func (t *Tree) drop(a *acl) {
	if a.nodes--; a.nodes == 0 {
		delete(t.acls, a.key)
	}
}

// allows reports whether who may do what perm (one or more bits, any of which suffices) says
// (ZooKeeperServer.checkACL). Nil allows everything.
func (a *acl) allows(perm int32, who []zk.ID) bool {
	if a == nil || a.world&perm != 0 || slices.Contains(who, Super) {
		return true
	}
	for _, e := range a.list {
		if e.Perms&perm == 0 {
			continue
		}
		for _, id := range who {
			switch {
			case id.Scheme != e.Scheme:
			case id.Scheme == "ip" && matchIP(e.ID.ID, id.ID), id.Scheme == "digest" && id.ID == e.ID.ID:
				return true
			}
		}
	}
	return false
}

// masked is the list as it is shown to who may not change it: without the hashes of passwords.
func masked(list []zk.ACL) []zk.ACL {
	out := slices.Clone(list)
	for i := range out {
		if user, _, ok := strings.Cut(out[i].ID.ID, ":"); ok && out[i].Scheme == "digest" {
			out[i].ID.ID = user + ":x"
		}
	}
	return out
}
