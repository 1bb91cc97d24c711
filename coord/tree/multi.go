package tree

import "platter/coord/zk"

// undo is what one step of a multi changed. A create has no node; a set has no parent.
type undo struct {
	path       string
	node       *node
	nodeMeta   meta
	data       []byte
	parent     *node
	parentMeta meta
}

func (t *Tree) remember(u undo) { t.undo = append(t.undo, u) }

// applyMulti does all operations or none. Later ones see what earlier ones did.
func (t *Tree) applyMulti(e *Entry, q *zk.MultiRequest) Result {
	t.undo = t.undo[:0]
	rs := make([]zk.MultiResult, len(q.Ops))
	failed := -1
	for i := range q.Ops {
		if !q.Ops[i].Sound() {
			t.rollBack()
			return Result{Err: zk.Marshalling}
		}
		rs[i] = t.applyOne(e, &q.Ops[i])
		if rs[i].Err != zk.OK {
			failed = i
			break
		}
	}
	if failed < 0 {
		return Result{Multi: zk.MultiResponse{Results: rs}}
	}
	t.rollBack()
	for i := range rs {
		r := zk.MultiResult{Op: q.Ops[i].Op}
		switch {
		case i == failed:
			r.Err = rs[i].Err
		case i > failed:
			r.Err = zk.RuntimeInconsistency
		}
		rs[i] = r
	}
	return Result{Multi: zk.MultiResponse{Results: rs, Failed: true}}
}

// rollBack takes the remembered steps back, last first, and forgets their changes.
func (t *Tree) rollBack() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		u := &t.undo[i]
		parentPath, name := split(u.path)
		switch {
		case u.parent == nil: // set
			t.setBytes(u.node, u.data)
			u.node.meta = u.nodeMeta
		case u.node == nil: // create
			t.detach(u.parent, u.path, name)
			u.parent.meta = u.parentMeta
			t.own(parentPath, -1)
		default: // delete
			t.attach(u.parent, u.path, u.node)
			u.parent.meta = u.parentMeta
			t.own(parentPath, 1)
		}
	}
	t.quotas.moved = t.quotas.moved[:0]
	t.undo = t.undo[:0]
	t.changes = t.changes[:0]
}
