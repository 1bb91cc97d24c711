package zkclient

import (
	"context"
	"slices"
	"strings"

	"platter/coord/zk"
)

// ID is who somebody is, in a scheme.
type ID = zk.ID

// WhoAmI gives whom the server takes this client for. It needs a server of 3.7 or newer.
func (c *Client) WhoAmI(ctx context.Context) ([]ID, error) {
	var ids []ID
	err := c.do(ctx, request{op: zk.OpWhoAmI, reply: ifOK(func(d *zk.Decoder) { ids = d.IDs() })})
	if err != nil {
		return nil, wrap("whoAmI", "", err)
	}
	return ids, nil
}

// Ephemerals lists this session's ephemeral nodes at and below a path, and those that begin so, sorted. It needs a
// server of 3.6 or newer.
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	var all []string
	q := zk.PathRecord{Path: c.full(prefix)}
	err := c.do(ctx, request{op: zk.OpGetEphemerals, record: q.Append, reply: ifOK(func(d *zk.Decoder) { all = d.Strings() })})
	if err != nil {
		return nil, wrap("ephemerals", prefix, err)
	}
	out := []string{}
	for _, full := range all {
		if strings.HasPrefix(full, c.chroot+"/") { // of a chroot /a the server gives /ab too
			out = append(out, c.local(full))
		}
	}
	slices.Sort(out)
	return out, nil
}

// AllChildrenNumber counts all nodes below a path. It needs a server of 3.6 or newer.
func (c *Client) AllChildrenNumber(ctx context.Context, path string) (int, error) {
	n := int32(0)
	q := zk.PathRecord{Path: c.full(path)}
	err := c.do(ctx, request{op: zk.OpGetAllChildrenNumber, record: q.Append, reply: ifOK(func(d *zk.Decoder) { n = d.Int32() })})
	if err != nil {
		return 0, wrap("allChildrenNumber", path, err)
	}
	return int(n), nil
}

// ServerConfig reads /zookeeper/config, whatever the chroot is: the servers of an ensemble, or nothing of one that
// stands alone. watch (nil: none) gets one event.
func (c *Client) ServerConfig(ctx context.Context, watch func(Event)) ([]byte, Stat, error) {
	const path = "/zookeeper/config"
	r := new(zk.GetDataResponse)
	err := c.readFull(ctx, zk.OpGetData, path, path, watch, r.Decode)
	if err != nil {
		return nil, Stat{}, wrap("config", path, err)
	}
	return slices.Clone(r.Data), Stat(r.Stat), nil
}

// WatchType says which watches on a path are meant.
type WatchType = zk.WatcherType

// Watch types.
const (
	ChildWatches WatchType = zk.WatcherChildren
	DataWatches  WatchType = zk.WatcherData
	AllWatches   WatchType = zk.WatcherAny // those that stay too
)

// RemoveWatches takes this client's watches of a type on a path away; nobody is told. ErrNoWatcher: there were none.
// With local they go here also when the server cannot be reached.
func (c *Client) RemoveWatches(ctx context.Context, path string, typ WatchType, local bool) error {
	full := c.full(path)
	if !c.hasWatches(full, typ) {
		return wrap("removeWatches", path, ErrNoWatcher)
	}
	q := zk.WatchesRequest{Path: full, Type: typ}
	drop := func(*zk.Decoder) { c.dropWatches(full, typ) } // in the order of answers: a later one may set a watch anew
	err := c.do(ctx, request{op: zk.OpRemoveWatches, record: q.Append, reply: ifOK(drop)})
	if err != nil && local {
		drop(nil)
		err = nil
	}
	return wrap("removeWatches", path, err)
}

// oneShot are the kinds of one-shot watches of a type.
func oneShot(typ WatchType) []watchKind {
	switch typ {
	case ChildWatches:
		return []watchKind{childWatch}
	case DataWatches:
		return []watchKind{dataWatch, existWatch}
	}
	return []watchKind{dataWatch, existWatch, childWatch}
}

func (c *Client) hasWatches(full string, typ WatchType) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range oneShot(typ) {
		if len(c.watches.once[k][full]) > 0 {
			return true
		}
	}
	return typ == AllWatches && len(c.watches.staying[full]) > 0
}

func (c *Client) dropWatches(full string, typ WatchType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range oneShot(typ) {
		delete(c.watches.once[k], full)
	}
	if typ == AllWatches {
		delete(c.watches.staying, full)
	}
}
