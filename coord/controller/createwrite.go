package controller

import (
	"errors"
	"fmt"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/engine/store"
)

// writeTopics writes the znodes of new topics, several in a multi where they fit: configuration, topic and
// partition states. The states of a topic that is too large for one multi come after it, by settle; a
// controller that dies in between leaves new partitions behind, which its successor finishes.
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
		ops := t.topicOps(p)
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
			if err := t.writeBatch(t.topicOps(p), []plan{p}, out); err != nil {
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
		t.created(p)
	}
	return nil
}

// created takes a topic that was written into the picture.
func (t *term) created(p plan) {
	t.core.setTopic(p.name, p.assignment, t.c.unclean(p.name))
	if states := t.firstStates(p); t.fits(p, states) {
		for _, ch := range states {
			t.core.commit(ch, t.epoch, 0)
		}
	}
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
	ops := t.topicOps(p)
	ops[0] = zkclient.SetOp(cluster.TopicConfigPath(p.name), cluster.EncodeConfig(p.configs), -1)
	if _, err := t.multi(ops...); err != nil {
		return err
	}
	t.created(p)
	return nil
}

// topicOps writes a topic, and its partitions' first states when they fit into one multi with it.
func (t *term) topicOps(p plan) []zkclient.Op {
	ops := headOps(p)
	if states := t.firstStates(p); t.fits(p, states) {
		return append(ops, t.firstOps(p, states)...)
	}
	return ops
}

func headOps(p plan) []zkclient.Op {
	return []zkclient.Op{
		zkclient.CreateOp(cluster.TopicConfigPath(p.name), cluster.EncodeConfig(p.configs), zkclient.Persistent),
		zkclient.CreateOp(cluster.TopicPath(p.name), cluster.EncodeAssignment(p.assignment), zkclient.Persistent),
	}
}

// firstStates are the states that elections would give the new partitions.
func (t *term) firstStates(p plan) []change {
	var out []change
	for i, replicas := range p.assignment.Replicas {
		part := partition{replicas: replicas}
		if s, ok := part.elect(t.core.standingFor(&part), false); ok {
			out = append(out, change{tp: store.TP{Topic: p.name, Partition: int32(i)}, state: s, isNew: true})
		}
	}
	return out
}

func (t *term) firstOps(p plan, states []change) []zkclient.Op {
	ops := make([]zkclient.Op, 0, 1+2*len(states))
	ops = append(ops, zkclient.CreateOp(cluster.PartitionsPath(p.name), nil, zkclient.Persistent))
	for i := range states {
		ops = append(ops, t.newStateOps(&states[i])...)
	}
	return ops
}

// fits: the topic and its states go into one multi.
func (t *term) fits(p plan, states []change) bool {
	if len(states) == 0 || 2*len(states) > multiOpsMax/2 {
		return false
	}
	var b batch
	b.add(headOps(p)...)
	return !b.full(t.firstOps(p, states))
}
