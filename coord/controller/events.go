package controller

import (
	"context"
	"errors"
	"fmt"
	"math"

	"platter/coord/cluster"
	"platter/coord/zkclient"
)

// ProducerIDBlockCount is how many ids a block has (ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE).
const ProducerIDBlockCount = 1000

// ProducerIDBlock reserves a block of producer ids: [first, first+count). Any broker may, the block's
// znode is changed by version.
func (c *Controller) ProducerIDBlock(ctx context.Context) (first int64, count int32, err error) {
	for {
		zk := c.session()
		if zk == nil {
			return 0, 0, ErrNotController
		}
		p, stat, err := zk.Get(ctx, cluster.ProducerIDBlockPath, nil)
		if err != nil {
			return 0, 0, err
		}
		if len(p) > 0 {
			last, err := cluster.DecodeProducerIDBlock(p)
			if err != nil {
				return 0, 0, err
			}
			if last.Last > math.MaxInt64-ProducerIDBlockCount {
				return 0, 0, fmt.Errorf("all producer ids are used up: the last block ends at %d", last.Last)
			}
			first = last.Last + 1
		}
		next := cluster.ProducerIDBlock{Broker: c.cfg.BrokerID, First: first, Last: first + ProducerIDBlockCount - 1}
		_, err = zk.Set(ctx, cluster.ProducerIDBlockPath, cluster.EncodeProducerIDBlock(next), stat.Version)
		if errors.Is(err, zkclient.ErrBadVersion) {
			continue
		}
		return first, ProducerIDBlockCount, err
	}
}

// readLogDirEvents acts on brokers' news of failed directories: the broker is told all its partitions
// anew and answers which of them it cannot serve; those get other leaders, or none.
func (t *term) readLogDirEvents() error {
	names, err := t.children(logDirNews, cluster.LogDirEventsPath)
	if err != nil || len(names) == 0 {
		return err
	}
	var paths []string
	for _, name := range names {
		paths = append(paths, cluster.LogDirEventPath(name))
	}
	nodes, err := t.zk.GetMany(t.ctx, paths)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if isNoNode(n.Err) {
			continue
		}
		if n.Err != nil {
			return n.Err
		}
		id, err := cluster.DecodeLogDirEvent(n.Data)
		if err != nil {
			t.c.cfg.Log.Error("a log directory event is not usable", "path", n.Path, "err", err)
			continue
		}
		t.core.recheck(id)
	}
	if err := t.settle(); err != nil {
		return err
	}
	for _, path := range paths {
		if err := t.remove(path); err != nil {
			return err
		}
	}
	return nil
}
