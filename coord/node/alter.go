package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/zkclient"
)

// applyWait bounds how long a changed override is waited for: it is durable by then, and comes into
// effect by itself.
const applyWait = 5 * time.Second

// AlterTopic changes a topic's overrides to what change makes of them, durably, tells all brokers, and waits a
// while until they are in effect here. change may be called several times; its error is returned as it
// is, and nothing is written then, nor with dry.
// controller.ErrUnknownTopic; controller.ErrInvalidConfig for more than controller.ConfigBytesMax.
func (n *Node) AlterTopic(ctx context.Context, topic string, change func(map[string]string) (map[string]string, error), dry bool) error {
	return n.alter(ctx, "topics", topic, change, dry)
}

// AlterBroker is AlterTopic for what was changed of a broker's settings at run time; broker -1: for all
// brokers.
func (n *Node) AlterBroker(ctx context.Context, broker int32, change func(map[string]string) (map[string]string, error), dry bool) error {
	entity := cluster.DefaultBrokersEntity
	if broker >= 0 {
		entity = strconv.Itoa(int(broker))
	}
	return n.alter(ctx, "brokers", entity, change, dry)
}

func (n *Node) alter(ctx context.Context, kind, name string, change func(map[string]string) (map[string]string, error), dry bool) error {
	for {
		path, err := n.tryAlter(ctx, kind, name, change, dry)
		switch {
		case errors.Is(err, zkclient.ErrBadVersion), errors.Is(err, zkclient.ErrNodeExists), errors.Is(err, zkclient.ErrConnectionLoss):
			// Somebody else was faster, or we cannot know whether it was done: it is the same once more.
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		case err != nil || dry:
			return err
		}
		n.raise(configNews)
		ctx, cancel := context.WithTimeout(ctx, applyWait)
		defer cancel()
		n.configs.await(ctx, path)
		return nil
	}
}

// tryAlter gives the path of the change's notification.
func (n *Node) tryAlter(ctx context.Context, kind, name string, change func(map[string]string) (map[string]string, error), dry bool) (string, error) {
	zk := n.zk.Load()
	path := "/config/" + kind + "/" + name
	if kind == "topics" {
		switch _, err := zk.Exists(ctx, cluster.TopicPath(name), nil); {
		case errors.Is(err, zkclient.ErrNoNode):
			return "", controller.ErrUnknownTopic
		case err != nil:
			return "", err
		}
	}
	p, stat, err := zk.Get(ctx, path, nil)
	missing := errors.Is(err, zkclient.ErrNoNode)
	if err != nil && !missing {
		return "", err
	}
	old, err := cluster.DecodeConfig(p)
	if err != nil {
		return "", err
	}
	next, err := change(old)
	if err != nil {
		return "", err
	}
	value := cluster.EncodeConfig(next)
	if len(value) > controller.ConfigBytesMax {
		return "", fmt.Errorf("%w: the settings take %d bytes, at most %d are kept", controller.ErrInvalidConfig, len(value), controller.ConfigBytesMax)
	}
	if dry {
		return "", nil
	}
	write := zkclient.SetOp(path, value, stat.Version)
	if missing {
		write = zkclient.CreateOp(path, value, zkclient.Persistent)
	}
	tell := zkclient.CreateOp(cluster.ConfigChangeSequencePath(), cluster.EncodeConfigChange(kind+"/"+name), zkclient.PersistentSequential)
	results, err := zk.Multi(ctx, write, tell)
	if errors.Is(err, zkclient.ErrNoNode) && kind == "topics" { // deleted at this moment
		return "", controller.ErrUnknownTopic
	}
	if err != nil {
		return "", err
	}
	return results[1].Path, nil
}

// await waits until the change at path was acted on, or ctx ends.
func (c *configs) await(ctx context.Context, path string) {
	for {
		c.mu.Lock()
		last, news := c.last, c.news
		c.mu.Unlock()
		if last >= path {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// reach notes that all changes up to last were acted on.
func (c *configs) reach(last string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = last
	close(c.news)
	c.news = make(chan struct{})
}

// applyDynamic puts the brokers' overrides in effect, as far as they concern this broker.
func (n *Node) applyDynamic(id int32) {
	if n.cfg.SetDynamic == nil {
		return
	}
	values := n.configs.broker()
	for _, err := range n.cfg.SetDynamic(values[strconv.Itoa(int(id))], values[""]) {
		n.log("a broker's override is not usable, and does not count", "err", err)
	}
}
