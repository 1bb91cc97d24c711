package zkclient

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"platter/coord/zk"
)

// Create makes a node, open to all (world:anyone); it returns the path with the sequence suffix.
func (c *Client) Create(ctx context.Context, path string, data []byte, m CreateMode) (string, error) {
	made, err := c.createFull(ctx, c.full(path), data, m)
	return c.local(made), wrap("create", path, err)
}

func (c *Client) createFull(ctx context.Context, full string, data []byte, m CreateMode) (string, error) {
	q := zk.CreateRequest{Path: full, Data: data, ACL: zk.WorldAnyone(), Flags: int32(m)}
	r := new(zk.CreateResponse)
	err := c.do(ctx, request{
		op:     zk.OpCreate,
		record: func(b []byte) []byte { return q.Append(b, zk.OpCreate) },
		reply:  ifOK(func(d *zk.Decoder) { r.Decode(d, zk.OpCreate) }),
	})
	if err != nil {
		return "", err
	}
	return r.Path, nil
}

// Delete removes a node; version -1 matches all.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	q := zk.DeleteRequest{Path: c.full(path), Version: version}
	return wrap("delete", path, c.do(ctx, request{op: zk.OpDelete, record: q.Append}))
}

// Exists gives the Stat, or ErrNoNode. watch (nil: none) gets one event; set for a missing node too.
func (c *Client) Exists(ctx context.Context, path string, watch func(Event)) (Stat, error) {
	st := new(zk.Stat)
	err := c.read(ctx, zk.OpExists, path, watch, st.Decode)
	if err != nil {
		return Stat{}, wrap("exists", path, err)
	}
	return Stat(*st), nil
}

// Get reads a node; the bytes are the caller's. watch (nil: none) gets one event.
func (c *Client) Get(ctx context.Context, path string, watch func(Event)) ([]byte, Stat, error) {
	r := new(zk.GetDataResponse)
	err := c.read(ctx, zk.OpGetData, path, watch, r.Decode)
	if err != nil {
		return nil, Stat{}, wrap("get", path, err)
	}
	return bytes.Clone(r.Data), Stat(r.Stat), nil
}

// Children lists names, sorted. watch (nil: none) gets one event.
func (c *Client) Children(ctx context.Context, path string, watch func(Event)) ([]string, Stat, error) {
	r := new(zk.GetChildrenResponse)
	err := c.read(ctx, zk.OpGetChildren2, path, watch, func(d *zk.Decoder) { r.Decode(d, zk.OpGetChildren2) })
	if err != nil {
		return nil, Stat{}, wrap("children", path, err)
	}
	slices.Sort(r.Names)
	return r.Names, Stat(r.Stat), nil
}

// read does one of the operations that can set a watch. The watch is set on the reader's goroutine,
// before the next frame is looked at: that may be its event.
func (c *Client) read(ctx context.Context, op zk.Op, path string, watch func(Event), decode func(*zk.Decoder)) error {
	return c.readFull(ctx, op, c.full(path), path, watch, decode)
}

// readFull is read of a full path, of which path is what the caller knows.
func (c *Client) readFull(ctx context.Context, op zk.Op, full, path string, watch func(Event), decode func(*zk.Decoder)) error {
	q := zk.PathWatchRequest{Path: full, Watch: watch != nil}
	watched := ""
	if watch != nil {
		watched = full
	}
	return c.do(ctx, request{
		op:     op,
		record: q.Append,
		watch:  watched,
		reply: func(h zk.ReplyHeader, d *zk.Decoder) {
			if h.Err == zk.OK {
				decode(d)
			}
			if kind, ok := watchSet(op, h.Err); ok && watch != nil {
				c.watch(kind, q.Path, watcher{path, watch})
			}
		},
	})
}

// watchSet tells which watch, if any, a reply leaves.
func watchSet(op zk.Op, code zk.Code) (watchKind, bool) {
	switch {
	case op == zk.OpExists && code == zk.NoNode:
		return existWatch, true
	case op == zk.OpGetChildren2:
		return childWatch, code == zk.OK
	}
	return dataWatch, code == zk.OK
}

// Node is one answer of GetMany.
type Node struct {
	Path string
	Data []byte
	Stat Stat
	Err  error
}

// GetMany reads many nodes, pipelined; a missing one has Err ErrNoNode.
func (c *Client) GetMany(ctx context.Context, paths []string) ([]Node, error) {
	nodes := make([]Node, len(paths))
	done := make(chan error, len(paths))
	for i, path := range paths {
		q := zk.PathWatchRequest{Path: c.full(path)}
		err := c.start(ctx, request{
			op:     zk.OpGetData,
			record: q.Append,
			reply: func(h zk.ReplyHeader, d *zk.Decoder) {
				n := Node{Path: path, Err: wrap("get", path, sentinel(h.Err))}
				if h.Err == zk.OK {
					var r zk.GetDataResponse
					r.Decode(d)
					n.Data, n.Stat = bytes.Clone(r.Data), Stat(r.Stat)
				}
				nodes[i] = n
			},
		}, done)
		if err != nil {
			return nil, wrap("get", path, err)
		}
	}
	for range paths {
		select {
		case err := <-done:
			var code zk.Code
			if err != nil && !isAnswer(err) && !errors.As(err, &code) {
				return nil, wrap("get", "many", err)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nodes, nil
}

// isAnswer reports whether err is what a server said of one node.
func isAnswer(err error) bool { return errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoAuth) }

// Set writes a node; version -1 matches all.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	q := zk.SetDataRequest{Path: c.full(path), Data: data, Version: version}
	st := new(zk.Stat)
	err := c.do(ctx, request{op: zk.OpSetData, record: q.Append, reply: ifOK(st.Decode)})
	if err != nil {
		return Stat{}, wrap("set", path, err)
	}
	return Stat(*st), nil
}

// Sync waits until all that was written through other connections before it is seen by this one.
func (c *Client) Sync(ctx context.Context, path string) error {
	q := zk.PathRecord{Path: c.full(path)}
	return wrap("sync", path, c.do(ctx, request{op: zk.OpSync, record: q.Append}))
}

// Ensure creates a persistent node and its missing parents; an existing one is no error.
func (c *Client) Ensure(ctx context.Context, path string, data []byte) error {
	return wrap("ensure", path, c.ensureFull(ctx, c.full(path), data))
}

func (c *Client) ensureFull(ctx context.Context, full string, data []byte) error {
	for {
		_, err := c.createFull(ctx, full, data, Persistent)
		switch {
		case errors.Is(err, ErrNodeExists):
			return nil
		case !errors.Is(err, ErrNoNode):
			return err
		}
		parent := full[:strings.LastIndexByte(full, '/')]
		if parent == "" {
			return err
		}
		if err := c.ensureFull(ctx, parent, nil); err != nil {
			return err
		}
	}
}

// ifOK is a reply that is decoded only when the server did what it was asked.
func ifOK(decode func(*zk.Decoder)) func(zk.ReplyHeader, *zk.Decoder) {
	return func(h zk.ReplyHeader, d *zk.Decoder) {
		if h.Err == zk.OK {
			decode(d)
		}
	}
}
