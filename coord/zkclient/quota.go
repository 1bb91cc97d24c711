package zkclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"platter/coord/zk"
)

// Quota is what a node and all below it may be, or are: -1 is no limit. Beyond a soft limit the server warns; beyond a
// hard one it refuses, if it is told to (enforceQuota).
type Quota struct{ Count, Bytes, CountHard, BytesHard int64 }

func (q *Quota) track(t zk.Track) { *q = Quota{t.Count, t.Bytes, t.CountHard, t.BytesHard} }

// Quota gives the limits on a path and what there is, or ErrNoNode. Quotas stand outside of a chroot, by full
// paths, as the server counts them.
func (c *Client) Quota(ctx context.Context, path string) (limits, used Quota, err error) {
	full := c.full(path)
	for at, to := range map[string]*Quota{zk.QuotaLimits(full): &limits, zk.QuotaStats(full): &used} {
		data, err := c.getFull(ctx, at)
		if err != nil {
			return limits, used, wrap("quota", path, err)
		}
		t, ok := zk.ParseTrack(data)
		if !ok {
			return limits, used, wrap("quota", path, fmt.Errorf("%s holds %.100q", at, data))
		}
		to.track(t)
	}
	return limits, used, nil
}

// ErrQuotaNearby: quotas do not nest, and there is one above or below. Only the nearest would count.
var ErrQuotaNearby = errors.New("there is a quota above or below")

// SetQuota changes those limits on a node that change sets, and makes the quota when there is none.
func (c *Client) SetQuota(ctx context.Context, path string, change func(*Quota)) error {
	return wrap("setQuota", path, c.setQuota(ctx, c.full(path), change))
}

func (c *Client) setQuota(ctx context.Context, full string, change func(*Quota)) error {
	if full == "/zookeeper" || strings.HasPrefix(full, "/zookeeper/") {
		return fmt.Errorf("no quota under /zookeeper")
	}
	if _, err := c.getFull(ctx, full); err != nil && !errors.Is(err, ErrNoAuth) {
		return err
	}
	if err := c.quotaNearby(ctx, full); err != nil {
		return err
	}
	for {
		had, err := c.getFull(ctx, zk.QuotaLimits(full))
		missing := errors.Is(err, ErrNoNode)
		if err != nil && !missing {
			return err
		}
		text, err := changed(had, change)
		if err != nil {
			return err
		}
		if !missing {
			return c.setFull(ctx, zk.QuotaLimits(full), text)
		}
		if err := c.ensureFull(ctx, zk.QuotaPath+full, nil); err != nil {
			return err
		}
		if _, err = c.createFull(ctx, zk.QuotaLimits(full), text, Persistent); errors.Is(err, ErrNodeExists) {
			continue // somebody else was first
		}
		if err == nil {
			// The server counts what is there when this one comes, after the limits.
			_, err = c.createFull(ctx, zk.QuotaStats(full), zk.Track{}.Append(nil), Persistent)
		}
		if errors.Is(err, ErrNodeExists) {
			err = nil
		}
		return err
	}
}

// changed gives the text of limits after a change.
func changed(text []byte, change func(*Quota)) ([]byte, error) {
	t, ok := zk.ParseTrack(text)
	if !ok {
		return nil, fmt.Errorf("the limits are unreadable: %.100q", text)
	}
	var q Quota
	q.track(t)
	change(&q)
	t.Count, t.Bytes, t.CountHard, t.BytesHard = q.Count, q.Bytes, q.CountHard, q.BytesHard
	return t.AppendLimits(nil), nil
}

// quotaNearby looks for quotas above and below, as zkCli.sh does before it makes one.
func (c *Client) quotaNearby(ctx context.Context, full string) error {
	for at := full; at != "" && at != "/"; {
		if at = at[:strings.LastIndexByte(at, '/')]; at == "" {
			break
		}
		switch _, err := c.getFull(ctx, zk.QuotaLimits(at)); {
		case err == nil:
			return fmt.Errorf("%w: %s", ErrQuotaNearby, at)
		case !errors.Is(err, ErrNoNode):
			return err
		}
	}
	return c.quotaBelow(ctx, full)
}

func (c *Client) quotaBelow(ctx context.Context, full string) error {
	left := []string{full}
	for len(left) > 0 {
		at := left[len(left)-1]
		left = left[:len(left)-1]
		names, err := c.childrenFull(ctx, zk.QuotaPath+at)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		for _, name := range names {
			switch "/" + name {
			case zk.StatsName:
			case zk.LimitsName:
				if at != full {
					return fmt.Errorf("%w: %s", ErrQuotaNearby, at)
				}
			default:
				left = append(left, at+"/"+name)
			}
		}
	}
	return nil
}

// DeleteQuota takes the quota of a node away, and what the way to it leaves empty; ErrNoNode: it has none.
func (c *Client) DeleteQuota(ctx context.Context, path string) error {
	return wrap("deleteQuota", path, c.deleteQuota(ctx, c.full(path)))
}

func (c *Client) deleteQuota(ctx context.Context, full string) error {
	if _, err := c.getFull(ctx, zk.QuotaLimits(full)); err != nil {
		return err
	}
	for _, at := range []string{zk.QuotaLimits(full), zk.QuotaStats(full)} {
		if err := c.deleteFull(ctx, at); err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	for at := zk.QuotaPath + full; at != zk.QuotaPath; at = at[:strings.LastIndexByte(at, '/')] {
		if err := c.deleteFull(ctx, at); err != nil {
			if errors.Is(err, ErrNotEmpty) || errors.Is(err, ErrNoNode) {
				return nil
			}
			return err
		}
	}
	return nil
}

func (c *Client) getFull(ctx context.Context, full string) ([]byte, error) {
	q, r := zk.PathWatchRequest{Path: full}, new(zk.GetDataResponse)
	if err := c.do(ctx, request{op: zk.OpGetData, record: q.Append, reply: ifOK(r.Decode)}); err != nil {
		return nil, err
	}
	return bytes.Clone(r.Data), nil
}

func (c *Client) setFull(ctx context.Context, full string, data []byte) error {
	q := zk.SetDataRequest{Path: full, Data: data, Version: -1}
	return c.do(ctx, request{op: zk.OpSetData, record: q.Append})
}

func (c *Client) deleteFull(ctx context.Context, full string) error {
	return c.do(ctx, request{op: zk.OpDelete, record: zk.DeleteRequest{Path: full, Version: -1}.Append})
}

func (c *Client) childrenFull(ctx context.Context, full string) ([]string, error) {
	q, r := zk.PathWatchRequest{Path: full}, new(zk.GetChildrenResponse)
	err := c.do(ctx, request{op: zk.OpGetChildren, record: q.Append, reply: ifOK(func(d *zk.Decoder) { r.Decode(d, zk.OpGetChildren) })})
	if err != nil {
		return nil, err
	}
	return r.Names, nil
}
