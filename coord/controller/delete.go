package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/engine/store"
	"platter/replication/host"
)

// ErrDeleteDisabled: delete.topic.enable is false.
var ErrDeleteDisabled = errors.New("topic deletion is disabled")

// DeleteTopics deletes by name and waits until the replicas are stopped, or ctx ends. From the first
// moment the topics' names and ids are unknown to clients; so a topic with replicas on a broker that is away counts as
// deleted, as with Kafka: its deletion is written down, and done when the broker is back.
func (c *Controller) DeleteTopics(ctx context.Context, names []string) []error {
	out := make([]error, len(names))
	results := make(chan []error, 1)
	err := c.do(ctx, func(t *term) error {
		results <- t.deleteTopics(names)
		return nil
	})
	select {
	case out = <-results:
	default:
		for i := range out {
			out[i] = err
		}
	}
	return out
}

func (t *term) deleteTopics(names []string) []error {
	out := make([]error, len(names))
	var ops []zkclient.Op
	marked := map[string]bool{}
	for i, name := range names {
		topic := t.core.topics[name]
		switch {
		case t.c.cfg.DeleteDisabled:
			out[i] = ErrDeleteDisabled
		case topic == nil || topic.deleting && !marked[name]:
			out[i] = fmt.Errorf("%w: '%s'", ErrUnknownTopic, name)
		case !marked[name]:
			marked[name] = true
			ops = append(ops, zkclient.CreateOp(cluster.DeleteTopicPath(name), nil, zkclient.Persistent))
		}
	}
	err := t.mark(ops)
	if err == nil {
		err = t.readDeletes()
	}
	if err != nil {
		t.unknown(err)
	}
	for i, name := range names {
		if out[i] != nil {
			continue
		}
		if topic := t.core.topics[name]; topic != nil && !topic.deleting {
			out[i] = fmt.Errorf("%w: %v", ErrNotController, err)
		}
	}
	return out
}

// mark creates the markers of topics to delete; one that is there already is as good.
func (t *term) mark(ops []zkclient.Op) error {
	for len(ops) > 0 {
		var b batch
		n := 0
		for n < len(ops) && !b.full(ops[n:n+1]) {
			b.add(ops[n])
			n++
		}
		_, err := t.multi(b.ops...)
		var refused *opError
		switch {
		case errors.As(err, &refused) && errors.Is(err, zkclient.ErrNodeExists):
			ops = append(append([]zkclient.Op(nil), ops[:refused.index]...), ops[refused.index+1:]...)
			continue
		case err != nil:
			return err
		}
		ops = ops[n:]
	}
	return nil
}

// readDeletes does what /admin/delete_topics asks for. A topic with a replica on a broker that is not
// there waits until the broker is back.
func (t *term) readDeletes() error {
	names, err := t.children(deletesNews, cluster.DeleteTopicsPath)
	if err != nil {
		return err
	}
	var doomed []*topic
	for _, name := range names {
		topic := t.core.topics[name]
		switch {
		case t.c.cfg.DeleteDisabled && topic != nil:
			t.c.cfg.Log.Warn("topic deletion is disabled; a request of another tool is dropped", "topic", name)
			if err := t.remove(cluster.DeleteTopicPath(name)); err != nil {
				return err
			}
		case topic == nil:
			if err := t.removeAll(name); err != nil {
				return err
			}
		default:
			t.core.hide(topic)
			doomed = append(doomed, topic)
		}
	}
	if err := t.settle(); err != nil { // nobody learns of the topics any more
		return err
	}
	doomed = slices.DeleteFunc(doomed, func(topic *topic) bool { return !t.stopReplicas(topic) })
	if err := t.removeZnodes(doomed); err != nil {
		return err
	}
	for _, topic := range doomed {
		t.core.removeTopic(topic.name)
		t.c.cfg.Log.Info("topic is deleted", "topic", topic.name, "id", topic.id)
	}
	return nil
}

// stopReplicas makes all brokers of a topic drop its replicas; false: not all could be told.
func (t *term) stopReplicas(topic *topic) bool {
	byBroker := map[int32][]StopPartition{}
	for i := range topic.parts {
		for _, id := range topic.parts[i].replicas {
			byBroker[id] = append(byBroker[id], StopPartition{
				TP:          store.TP{Topic: topic.name, Partition: int32(i)},
				LeaderEpoch: LeaderEpochDeleted,
				Delete:      true,
			})
		}
	}
	all := true
	for id, parts := range byBroker {
		b, live := t.core.brokers[id]
		if !live {
			t.c.cfg.Log.Info("a topic's deletion waits for a broker", "topic", topic.name, "broker", id)
			all = false
			continue
		}
		if err := t.stop(b, parts); err != nil {
			if errors.Is(err, errLate) || errors.Is(err, host.ErrHangs) {
				t.c.cfg.Clock.AfterFunc(sendDelayMax, func() { t.c.raise(deletesNews) })
			}
			t.c.cfg.Log.Error("a broker did not drop its replicas", "topic", topic.name, "broker", id, "err", err)
			all = false
		}
	}
	return all
}

// removeZnodes removes topics' znodes from the leaves up, in multis that fit; a topic's marker goes last, so
// that a controller that dies in between leaves a deletion behind that its successor finishes.
func (t *term) removeZnodes(topics []*topic) error {
	var b batch
	var in []*topic // with ops in b
	flush := func() error {
		if len(b.ops) == 0 {
			return nil
		}
		_, err := t.multi(b.ops...)
		b = batch{}
		var refused *opError
		if !errors.As(err, &refused) {
			return err
		}
		// The znodes are not what we think: partly removed before, or with more below them.
		for _, topic := range in {
			if err := t.removeAll(topic.name); err != nil {
				return err
			}
		}
		return nil
	}
	for _, gone := range topics {
		in = append(in, gone)
		for _, path := range topicPaths(gone) {
			op := zkclient.DeleteOp(path, -1)
			if b.full([]zkclient.Op{op}) {
				if err := flush(); err != nil {
					return err
				}
				in = []*topic{gone}
			}
			b.add(op)
		}
	}
	return flush()
}

// topicPaths are a topic's znodes from the leaves up, and its marker.
func topicPaths(topic *topic) []string {
	out := make([]string, 0, 2*len(topic.parts)+4)
	for i := range topic.parts {
		out = append(out, cluster.StatePath(topic.name, int32(i)), cluster.PartitionPath(topic.name, int32(i)))
	}
	return append(out, cluster.PartitionsPath(topic.name), cluster.TopicPath(topic.name),
		cluster.TopicConfigPath(topic.name), cluster.DeleteTopicPath(topic.name))
}

// removeAll removes whatever znodes there are of a topic, the marker last.
func (t *term) removeAll(name string) error {
	for _, path := range []string{cluster.TopicPath(name), cluster.TopicConfigPath(name)} {
		if err := t.removeTree(path); err != nil {
			return err
		}
	}
	return t.remove(cluster.DeleteTopicPath(name))
}

// removeTree removes a znode with all below it, one by one.
func (t *term) removeTree(path string) error {
	names, _, err := t.zk.Children(t.ctx, path, nil)
	if isNoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := t.removeTree(path + "/" + name); err != nil {
			return err
		}
	}
	return t.remove(path)
}

// remove removes one znode; a missing one is no error.
func (t *term) remove(path string) error {
	_, err := t.multi(zkclient.DeleteOp(path, -1))
	if isNoNode(err) {
		return nil
	}
	return err
}

// forget drops a topic whose znode vanished without a marker: another tool removed it. Its replicas are
// stopped, their logs stay.
func (t *term) forget(name string) {
	topic := t.core.topics[name]
	if topic.deleting {
		return // ours to finish
	}
	t.c.cfg.Log.Warn("a topic's znode is gone without a deletion; its logs are kept", "topic", name)
	for _, b := range t.core.liveBrokers() {
		if err := t.stop(b, stopParts(topic, false)); err != nil {
			t.c.cfg.Log.Error("a broker did not stop its replicas", "topic", name, "broker", b.ID, "err", err)
		}
	}
	t.core.removeTopic(name)
}
