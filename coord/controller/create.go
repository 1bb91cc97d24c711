package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"platter/coord/cluster"
	"platter/coord/zkclient"
)

// CreateTopics creates and waits until the leaders serve, or ctx ends.
func (c *Controller) CreateTopics(ctx context.Context, ts []NewTopic) []Created {
	out := make([]Created, len(ts))
	results := make(chan []Created, 1) // out must not be written to once ctx has ended
	err := c.do(ctx, func(t *term) error {
		r, err := t.createTopics(ts)
		results <- r
		return err
	})
	select {
	case out = <-results:
	default:
		for i := range ts {
			out[i] = Created{Name: ts[i].Name, PartitionCount: -1, ReplicationFactor: -1, Err: err}
		}
	}
	return out
}

// plan is a topic that is about to be created.
type plan struct {
	index      int // in the request
	name       string
	assignment cluster.Assignment
	configs    map[string]string
}

func (t *term) createTopics(ts []NewTopic) ([]Created, error) {
	out := make([]Created, len(ts))
	var plans []plan
	for i := range ts {
		out[i] = Created{Name: ts[i].Name, PartitionCount: -1, ReplicationFactor: -1}
		p, err := t.plan(&ts[i], plans)
		if err != nil {
			out[i].Err = err
			continue
		}
		p.index = i
		out[i].PartitionCount = int32(len(p.assignment.Replicas))
		out[i].ReplicationFactor = int16(len(p.assignment.Replicas[0]))
		if !ts[i].ValidateOnly {
			out[i].ID = p.assignment.ID
			plans = append(plans, p)
		}
	}
	err := t.writeTopics(plans, out)
	if err != nil {
		t.unknown(err)
		for _, p := range plans {
			if out[p.index].Err == nil && t.core.topics[p.name] == nil {
				out[p.index].Err = fmt.Errorf("%w: %v", ErrNotController, err)
			}
		}
		return out, nil
	}
	if err := t.settle(); err != nil {
		t.unknown(err)
	}
	for _, p := range plans {
		if out[p.index].Err == nil {
			out[p.index].Err = t.served(p.name)
		}
	}
	return out, nil
}

// unknown notes a failure in the midst of a request: everything is read again.
func (t *term) unknown(err error) {
	t.c.active.Store(false)
	if errors.Is(err, errDeposed) {
		t.depose()
		return
	}
	t.loaded = false
	t.c.cfg.Log.Error("controller: will read the cluster again", "err", err)
	t.c.raise(reread)
}

// served says whether each partition of a new topic has a leader.
func (t *term) served(name string) error {
	topic := t.core.topics[name]
	if topic == nil {
		return ErrTimeout
	}
	for i := range topic.parts {
		if p := &topic.parts[i]; !p.exists || p.state.Leader < 0 {
			return fmt.Errorf("%w: partition %d of the new topic %s has no leader", ErrTimeout, i, name)
		}
	}
	return nil
}

// plan validates a new topic and places it. others are in the same request, ahead of it.
func (t *term) plan(n *NewTopic, others []plan) (plan, error) {
	if err := CheckTopicName(n.Name); err != nil {
		return plan{}, err
	}
	if err := t.checkFree(n.Name, others); err != nil {
		return plan{}, err
	}
	configs := make(map[string]string, len(n.Configs))
	for k, v := range n.Configs {
		if v == nil {
			return plan{}, fmt.Errorf("%w: null value not supported for topic configs: %s", ErrInvalidConfig, k)
		}
		configs[k] = *v
	}
	if check := t.c.cfg.CheckTopic; check != nil {
		if err := check(configs); err != nil {
			return plan{}, fmt.Errorf("%w: %v", ErrInvalidConfig, err)
		}
	}
	replicas, err := t.assign(n)
	if err != nil {
		return plan{}, err
	}
	p := plan{name: n.Name, configs: configs, assignment: cluster.Assignment{ID: cluster.NewUUID(), Replicas: replicas}}
	if size := len(cluster.EncodeAssignment(p.assignment)); size > multiBytesMax {
		return plan{}, fmt.Errorf("%w: the assignment of %d partitions takes %d bytes, more than a znode may have (%d)",
			ErrInvalidPartitions, len(replicas), size, multiBytesMax)
	}
	return p, nil
}

// checkFree: the name is not taken, and does not collide with another in metric names.
func (t *term) checkFree(name string, others []plan) error {
	same := func(p plan) bool { return p.name == name }
	if t.core.topics[name] != nil || slices.ContainsFunc(others, same) {
		return fmt.Errorf("%w: topic '%s' already exists", ErrTopicExists, name)
	}
	key := collisionKey(name)
	collides := func(p plan) bool { return collisionKey(p.name) == key }
	if t.core.names[key] > 0 || slices.ContainsFunc(others, collides) {
		return fmt.Errorf("%w: topic '%s' collides with an existing one ('.' and '_' are alike in metric names)", ErrInvalidTopic, name)
	}
	return nil
}

// assign gives the replicas by partition, as asked for by hand or placed.
func (t *term) assign(n *NewTopic) ([][]int32, error) {
	live := t.core.liveBrokers()
	if n.Assignment != nil {
		return n.Assignment, t.checkAssignment(n)
	}
	partitions, factor := n.PartitionCount, n.ReplicationFactor
	if partitions == -1 {
		partitions = max(t.c.cfg.PartitionCountDefault, 1)
	}
	if factor == -1 {
		factor = max(t.c.cfg.ReplicationDefault, 1)
	}
	switch {
	case partitions <= 0:
		return nil, fmt.Errorf("%w: number of partitions must be larger than 0", ErrInvalidPartitions)
	case partitions > cluster.PartitionCountMax:
		return nil, fmt.Errorf("%w: number of partitions must be at most %d", ErrInvalidPartitions, cluster.PartitionCountMax)
	case factor <= 0:
		return nil, fmt.Errorf("%w: replication factor must be larger than 0", ErrInvalidReplication)
	case int(factor) > len(live):
		return nil, fmt.Errorf("%w: replication factor: %d larger than available brokers: %d", ErrInvalidReplication, factor, len(live))
	}
	if !n.ValidateOnly {
		defer func() { t.core.rotation++ }()
	}
	return place(live, t.core.rotation, int(partitions), int(factor)), nil
}

// checkAssignment holds a manual assignment against Kafka's rules.
func (t *term) checkAssignment(n *NewTopic) error {
	switch {
	case n.PartitionCount != -1 || n.ReplicationFactor != -1:
		return fmt.Errorf("%w: both numPartitions or replicationFactor and replicasAssignments were set", ErrInvalidAssignment)
	case len(n.Assignment) == 0:
		return fmt.Errorf("%w: no partitions", ErrInvalidAssignment)
	case len(n.Assignment) > cluster.PartitionCountMax:
		return fmt.Errorf("%w: number of partitions must be at most %d", ErrInvalidPartitions, cluster.PartitionCountMax)
	}
	for i, ids := range n.Assignment {
		if len(ids) == 0 || len(ids) != len(n.Assignment[0]) {
			return fmt.Errorf("%w: all partitions should have the same number of replicas, and at least one", ErrInvalidAssignment)
		}
		for j, id := range ids {
			if slices.Contains(ids[:j], id) {
				return fmt.Errorf("%w: duplicate replica assignment found: partition %d: %v", ErrInvalidAssignment, i, ids)
			}
			if _, ok := t.core.brokers[id]; !ok {
				return fmt.Errorf("%w: partition %d: broker %d is not known", ErrInvalidAssignment, i, id)
			}
		}
	}
	return nil
}

// writeTopics writes the znodes of new topics, several in a multi where they fit. The first multi of a
// topic makes configuration and topic znode; partition states that do not fit come after it, by settle:
// a controller that dies in between leaves new partitions behind, which its successor finishes.
func (t *term) writeTopics(plans []plan, out []Created) error {
	var b batch
	var in []plan
	flush := func() error {
		if len(in) == 0 {
			return nil
		}
		err := t.writeBatch(b.ops, in, out)
		b, in = batch{}, nil
		return err
	}
	for _, p := range plans {
		ops := topicOps(p)
		if b.full(ops) {
			if err := flush(); err != nil {
				return err
			}
		}
		b.add(ops...)
		in = append(in, p)
	}
	return flush()
}

func (t *term) writeBatch(ops []zkclient.Op, in []plan, out []Created) error {
	_, err := t.multi(ops...)
	var refused *opError
	switch {
	case errors.As(err, &refused) && len(in) > 1:
		for _, p := range in { // one of them; find out which
			if err := t.writeBatch(topicOps(p), []plan{p}, out); err != nil {
				return err
			}
		}
		return nil
	case errors.As(err, &refused):
		return t.writeOver(in[0], refused, &out[in[0].index])
	case err != nil:
		return err
	}
	for _, p := range in {
		t.core.setTopic(p.name, p.assignment, t.c.unclean(p.name))
	}
	return nil
}

// writeOver creates a topic whose znodes are there in part: a stale configuration is overwritten; a
// topic of that name, from another tool a moment ago, is left alone.
func (t *term) writeOver(p plan, why error, out *Created) error {
	if !errors.Is(why, zkclient.ErrNodeExists) {
		return why
	}
	if _, err := t.zk.Exists(t.ctx, cluster.TopicPath(p.name), nil); err == nil {
		out.Err = fmt.Errorf("%w: topic '%s' already exists", ErrTopicExists, p.name)
		t.c.raise(topicsNews)
		return nil
	} else if !isNoNode(err) {
		return err
	}
	ops := topicOps(p)
	ops[0] = zkclient.SetOp(cluster.TopicConfigPath(p.name), cluster.EncodeConfig(p.configs), -1)
	if _, err := t.multi(ops...); err != nil {
		return err
	}
	t.core.setTopic(p.name, p.assignment, t.c.unclean(p.name))
	return nil
}

func topicOps(p plan) []zkclient.Op {
	return []zkclient.Op{
		zkclient.CreateOp(cluster.TopicConfigPath(p.name), cluster.EncodeConfig(p.configs), zkclient.Persistent),
		zkclient.CreateOp(cluster.TopicPath(p.name), cluster.EncodeAssignment(p.assignment), zkclient.Persistent),
	}
}
