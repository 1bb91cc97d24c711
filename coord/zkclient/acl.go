package zkclient

import (
	"context"
	"time"

	"platter/coord/zk"
)

// ACL is one entry of a node's access list; OpenACL lets everybody do everything.
type ACL = zk.ACL

// OpenACL is world:anyone with all permissions.
func OpenACL() []ACL { return zk.WorldAnyone() }

// AddAuth proves who the client is ("digest", "user:password"), now and after every reconnect. A refusal is
// ErrAuthFailed.
func (c *Client) AddAuth(ctx context.Context, scheme string, auth []byte) error {
	a := zk.AuthRequest{Scheme: scheme, Auth: auth}
	err := c.do(ctx, request{op: zk.OpAuth, record: a.Append, reply: ifOK(func(*zk.Decoder) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.auths = append(c.auths, a)
	})})
	return wrap("addAuth", scheme, err)
}

func authFrame(a zk.AuthRequest) []byte {
	return zk.AppendFrame(nil, func(b []byte) []byte {
		return a.Append(zk.RequestHeader{Xid: zk.XidAuth, Op: zk.OpAuth}.Append(b))
	})
}

// GetACL gives a node's access list.
func (c *Client) GetACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	q := zk.GetACLRequest{Path: c.full(path)}
	r := new(zk.GetACLResponse)
	if err := c.do(ctx, request{op: zk.OpGetACL, record: q.Append, reply: ifOK(r.Decode)}); err != nil {
		return nil, Stat{}, wrap("getACL", path, err)
	}
	return r.ACL, Stat(r.Stat), nil
}

// SetACL replaces it; version (Stat.Aversion) -1 matches all.
func (c *Client) SetACL(ctx context.Context, path string, acl []ACL, version int32) (Stat, error) {
	q := zk.SetACLRequest{Path: c.full(path), ACL: acl, Version: version}
	st := new(zk.Stat)
	if err := c.do(ctx, request{op: zk.OpSetACL, record: q.Append, reply: ifOK(st.Decode)}); err != nil {
		return Stat{}, wrap("setACL", path, err)
	}
	return Stat(*st), nil
}

// CreateOptions is what a node can be made with.
type CreateOptions struct {
	Mode      CreateMode
	ACL       []ACL         // nil: OpenACL
	Container bool          // the server removes it once its last child is gone
	TTL       time.Duration // above 0: the server removes it when it is this long without children and writes
}

// CreateWith makes a node as it is told to; it returns the path with the sequence suffix, and the Stat.
func (c *Client) CreateWith(ctx context.Context, path string, data []byte, o CreateOptions) (string, Stat, error) {
	q := zk.CreateRequest{Path: c.full(path), Data: data, ACL: o.ACL, Flags: int32(o.Mode)}
	if q.ACL == nil {
		q.ACL = zk.WorldAnyone()
	}
	op := zk.OpCreate2
	switch {
	case o.Container:
		op, q.Flags = zk.OpCreateContainer, zk.FlagContainer
	case o.TTL > 0:
		op, q.Flags, q.TTLMs = zk.OpCreateTTL, zk.FlagTTL, o.TTL.Milliseconds()
		if o.Mode == PersistentSequential {
			q.Flags = zk.FlagTTLSequential
		}
	}
	r := new(zk.CreateResponse)
	err := c.do(ctx, request{
		op:     op,
		record: func(b []byte) []byte { return q.Append(b, op) },
		reply:  ifOK(func(d *zk.Decoder) { r.Decode(d, op) }),
	})
	if err != nil {
		return "", Stat{}, wrap("create", path, err)
	}
	return c.local(r.Path), Stat(r.Stat), nil
}
