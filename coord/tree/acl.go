package tree

import "platter/coord/zk"

// acl is a node's access list, shared by all nodes that have the same one.
type acl struct {
	list  []zk.ACL
	world int32 // permissions of world:anyone
}

func isWorld(id zk.ID) bool { return id == zk.ID{Scheme: "world", ID: "anyone"} }

// intern gives the one acl of this list, or nil when the list is not acceptable: empty, or with
// another identity than world:anyone, the only one that is enforced.
func (t *Tree) intern(list []zk.ACL) *acl {
	if len(list) == 0 {
		return nil
	}
	for _, a := range list {
		if !isWorld(a.ID) {
			return nil
		}
	}
	return t.internAny(list)
}

// internAny is intern without a check, for what a snapshot holds.
func (t *Tree) internAny(list []zk.ACL) *acl {
	key := string(zk.AppendACLs(nil, list))
	if a := t.acls[key]; a != nil {
		return a
	}
	a := &acl{list: list}
	for _, e := range list {
		if isWorld(e.ID) {
			a.world |= e.Perms
		}
	}
	t.acls[key] = a
	return a
}

// allows reports whether a session may do what perm (one or more bits, any of which suffices) says. Nil allows
// everything.
func (a *acl) allows(perm int32) bool { return a == nil || a.world&perm != 0 }
