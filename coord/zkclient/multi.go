package zkclient

import (
	"context"

	"platter/coord/zk"
)

// Op is one operation of a Multi: made by CreateOp, DeleteOp, SetOp, CheckOp.
type Op struct {
	kind    int32
	path    string
	data    []byte
	version int32
	mode    CreateMode
}

// CreateOp makes a node, open to all (world:anyone).
func CreateOp(path string, data []byte, m CreateMode) Op {
	return Op{kind: int32(zk.OpCreate), path: path, data: data, mode: m}
}

// DeleteOp removes a node at version, or -1: at any.
func DeleteOp(path string, version int32) Op {
	return Op{kind: int32(zk.OpDelete), path: path, version: version}
}

// SetOp writes a node at version, or -1: at any.
func SetOp(path string, data []byte, version int32) Op {
	return Op{kind: int32(zk.OpSetData), path: path, data: data, version: version}
}

// CheckOp fails the multi unless the node is there at version, or -1: at any.
func CheckOp(path string, version int32) Op {
	return Op{kind: int32(zk.OpCheck), path: path, version: version}
}

// Bytes is about what the operation takes in a request: callers keep a multi's sum below
// zk.MaxFrameBytes.
func (o Op) Bytes() int { return 64 + len(o.path) + len(o.data) }

// Result is one operation's outcome.
type Result struct {
	Path string // of a create
	Stat Stat   // of a set
	Err  error
}

// Multi does all or nothing. On failure err is the first failing operation's, and Results say which:
// nil before it, its own error at it, zk.RuntimeInconsistency after it.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) {
	var q zk.MultiRequest
	for _, o := range ops {
		full := c.full(o.path)
		m := zk.MultiOp{Op: zk.Op(o.kind)}
		m.Create = zk.CreateRequest{Path: full, Data: o.data, ACL: zk.WorldAnyone(), Flags: int32(o.mode)}
		m.Set = zk.SetDataRequest{Path: full, Data: o.data, Version: o.version}
		m.Target = zk.DeleteRequest{Path: full, Version: o.version}
		q.Ops = append(q.Ops, m)
	}
	r := new(zk.MultiResponse)
	err := c.do(ctx, request{op: zk.OpMulti, record: q.Append, reply: ifOK(r.Decode)})
	if err != nil {
		return nil, wrap("multi", first(ops), err)
	}
	results := make([]Result, len(r.Results))
	for i, x := range r.Results {
		results[i] = Result{Stat: Stat(x.Stat), Err: sentinel(x.Err)}
		if x.Path != "" {
			results[i].Path = c.local(x.Path)
		}
		if x.Err != zk.OK && err == nil && i < len(ops) {
			err = wrap("multi", ops[i].path, results[i].Err)
		}
	}
	return results, err
}

func first(ops []Op) string {
	if len(ops) == 0 {
		return "(empty)"
	}
	return ops[0].path
}
