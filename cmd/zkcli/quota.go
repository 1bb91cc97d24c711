package zkcli

import (
	"context"
	"errors"
	"fmt"

	"platter/coord/zkclient"
)

type quotaJSON struct {
	Path      string `json:"path"`
	Count     int64  `json:"count"`
	Bytes     int64  `json:"bytes"`
	CountHard int64  `json:"countHardLimit"`
	BytesHard int64  `json:"byteHardLimit"`
	Nodes     int64  `json:"nodesNow"`
	BytesNow  int64  `json:"bytesNow"`
}

// ListQuota prints the limits on a node and all below it (-1: none), and what there is, as zkCli does.
func (t *Tool) ListQuota(ctx context.Context, p string) error {
	p = clean(p)
	in, cancel := t.within(ctx)
	defer cancel()
	limits, used, err := t.zk.Quota(in, p)
	switch {
	case errors.Is(err, zkclient.ErrNoNode):
		return fmt.Errorf("quota for %s does not exist", p)
	case err != nil:
		return err
	case t.o.JSON:
		return t.emit(quotaJSON{p, limits.Count, limits.Bytes, limits.CountHard, limits.BytesHard, used.Count, used.Bytes})
	}
	return t.line("Output quota for %s count=%d,bytes=%d=;byteHardLimit=%d;countHardLimit=%d\nOutput stat for %s count=%d,bytes=%d",
		p, limits.Count, limits.Bytes, limits.BytesHard, limits.CountHard, p, used.Count, used.Bytes)
}

// SetQuota changes the limits that change sets.
func (t *Tool) SetQuota(ctx context.Context, p string, change func(*zkclient.Quota)) error {
	in, cancel := t.within(ctx)
	defer cancel()
	return t.zk.SetQuota(in, clean(p), change)
}

// DeleteQuota takes limits away: those that change unsets, or without it the whole quota.
func (t *Tool) DeleteQuota(ctx context.Context, p string, change func(*zkclient.Quota)) error {
	p = clean(p)
	in, cancel := t.within(ctx)
	defer cancel()
	if change == nil {
		return noQuota(p, t.zk.DeleteQuota(in, p))
	}
	if _, _, err := t.zk.Quota(in, p); err != nil {
		return noQuota(p, err)
	}
	return t.zk.SetQuota(in, p, change)
}

func noQuota(p string, err error) error {
	if errors.Is(err, zkclient.ErrNoNode) {
		return fmt.Errorf("quota for %s does not exist", p)
	}
	return err
}
