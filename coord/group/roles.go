package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"platter/coord/controller"
	"platter/engine/store"
	"platter/replication/replica"
)

const (
	// loadersMax is how many partitions are read at a time.
	loadersMax = 4
	// createWait bounds the creation of the topic, loadWait the wait for a shard that is about to be ready.
	createWait = 10 * time.Second
	loadWait   = 2 * time.Second
)

// RolesChanged looks which partitions are led here; called after leadership of topics may have changed (nil:
// of any), and once at the start. It does not wait for what there is to load.
func (c *Coordinator) RolesChanged(topics []string) {
	if topics != nil && !slices.Contains(topics, Topic) {
		return
	}
	c.roles.Lock()
	defer c.roles.Unlock()
	led := map[int32]leadership{} // by partition
	c.cfg.Replicas.All(func(tp store.TP, r *replica.Replica) {
		if tp.Topic != Topic {
			return
		}
		if st, err := r.State(-1); err == nil && st.IsLeader {
			led[tp.Partition] = leadershipOf(&st)
		}
	})
	var gone, begun []*shard
	c.mu.Lock()
	for p, s := range c.shards {
		if now, ok := led[p]; !ok || now != s.led || c.closed {
			gone = append(gone, s)
			delete(c.shards, p)
		}
	}
	for p, now := range led {
		if c.shards[p] == nil && !c.closed {
			s := newShard(c, p, now)
			c.shards[p] = s
			begun = append(begun, s)
		}
	}
	c.mu.Unlock()
	for _, s := range gone {
		s.stop(ErrNotCoordinator)
	}
	for _, s := range begun {
		c.jobs.Go(s.load)
	}
	c.notify()
}

// notify wakes those who wait for a shard.
func (c *Coordinator) notify() {
	c.mu.Lock()
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
}

// Leader is the broker that coordinates a group. The topic is created on first use. ErrNotAvailable: none
// does now.
func (c *Coordinator) Leader(ctx context.Context, group string) (int32, error) {
	if err := c.ensureTopic(ctx); err != nil {
		return -1, fmt.Errorf("%w: %w", ErrNotAvailable, err)
	}
	t := c.cfg.Image().Topics[Topic]
	if t == nil || len(t.Partitions) == 0 {
		return -1, fmt.Errorf("%w: %s has no partitions", ErrNotAvailable, Topic)
	}
	p := PartitionOf(group, int32(len(t.Partitions)))
	leader := t.Partitions[p].Leader
	if leader < 0 {
		return -1, fmt.Errorf("%w: partition %d of %s has no leader", ErrNotAvailable, p, Topic)
	}
	if leader == c.cfg.BrokerID {
		c.awaitLoaded(ctx, p)
	}
	return leader, nil
}

// awaitLoaded waits a moment for a shard of this broker, so that a client's next request finds it.
func (c *Coordinator) awaitLoaded(ctx context.Context, partition int32) {
	ctx, cancel := context.WithTimeout(ctx, loadWait)
	defer cancel()
	for {
		c.mu.RLock()
		changed, s := c.changed, c.shards[partition]
		c.mu.RUnlock()
		if s != nil && s.ready() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ensureTopic creates the topic unless it is there, and waits until its leaders are known. As in Kafka since 0.11 (KIP-115)
// it is not created with fewer replicas than were asked for.
func (c *Coordinator) ensureTopic(ctx context.Context) error {
	if c.cfg.Image().Topics[Topic] != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
	select {
	case c.creating <- struct{}{}:
		defer func() { <-c.creating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	img := c.cfg.Image()
	if img.Topics[Topic] != nil {
		return nil
	}
	replicas := c.cfg.ReplicationFactor
	if c.cfg.FewerReplicas {
		replicas = min(replicas, int16(max(len(img.Brokers), 1)))
	}
	segment, policy, codec := strconv.Itoa(c.cfg.SegmentBytes), "compact", "producer"
	created := c.cfg.Controller.CreateTopics(ctx, []controller.NewTopic{{
		Name:              Topic,
		PartitionCount:    c.cfg.PartitionCount,
		ReplicationFactor: replicas,
		Configs:           map[string]*string{"cleanup.policy": &policy, "compression.type": &codec, "segment.bytes": &segment},
	}})
	if err := created[0].Err; err != nil && !errors.Is(err, controller.ErrTopicExists) {
		return err
	}
	for c.cfg.Image().Topics[Topic] == nil {
		select {
		case <-c.cfg.Clock.After(2 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// TopicsDeleted drops the offsets that groups had committed for topics that are gone. It does not wait.
func (c *Coordinator) TopicsDeleted(topics []string) {
	if len(topics) == 0 {
		return
	}
	for _, s := range c.all() {
		s.mu.Lock()
		switch {
		case s.stopped:
		case !s.loaded:
			s.deleted = append(s.deleted, topics...)
		default:
			s.forgetTopics(topics)
		}
		idle := len(s.queue) == 0
		s.mu.Unlock()
		if !idle {
			go s.flush()
		}
	}
}

// forgetTopics queues the deletion of the topics' offsets. Called under mu.
func (s *shard) forgetTopics(topics []string) {
	if len(topics) == 0 {
		return
	}
	for _, e := range s.groups {
		var gone []store.TP
		for tp := range e.Offsets() {
			if slices.Contains(topics, tp.Topic) {
				gone = append(gone, tp)
			}
		}
		s.forget(e, gone, nil)
	}
}
