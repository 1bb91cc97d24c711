package controller

import (
	"errors"
	"fmt"
	"slices"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/engine/store"
)

func isNoNode(err error) bool { return errors.Is(err, zkclient.ErrNoNode) }

// load reads the whole cluster, pipelined, and brings it in order: elections, pushes to everybody,
// deletions that were under way. What only we know (offline replicas, who is leaving) is carried over; a try that
// fails forgets nothing of it.
func (t *term) load() error {
	before := t.core
	t.core = newCore()
	t.loaded = false
	if err := t.readAll(); err != nil {
		t.core = before
		return err
	}
	t.core.carryOffline(before)
	t.core.leaving = before.leaving
	t.core.rotation = max(before.rotation, len(t.core.topics))
	t.asking = false // this may have come instead of it
	if err := t.settle(); err != nil {
		return err
	}
	t.loaded = true
	if err := t.readLogDirEvents(); err != nil {
		return err
	}
	return t.readDeletes()
}

// readAll fills the core with what the znodes say.
func (t *term) readAll() error {
	if err := t.readBrokers(); err != nil {
		return err
	}
	if err := t.readTopics(); err != nil {
		return err
	}
	doomed, err := t.children(deletesNews, cluster.DeleteTopicsPath)
	if err != nil {
		return err
	}
	for _, name := range doomed {
		if topic := t.core.topics[name]; topic != nil {
			t.core.hide(topic)
		}
	}
	return nil
}

// carryOffline takes over which replicas of brokers that have not registered anew are offline.
func (c *core) carryOffline(before *core) {
	for name, old := range before.topics {
		t := c.topics[name]
		if t == nil || t.id != old.id {
			continue
		}
		for i := range old.parts {
			for _, id := range old.parts[i].offline {
				if c.brokers[id].Epoch == before.brokers[id].Epoch {
					c.replicaOffline(id, store.TP{Topic: name, Partition: int32(i)})
				}
			}
		}
	}
}

// readBrokers reads who is registered. A foreign broker is refused by its own name and not counted.
func (t *term) readBrokers() error {
	names, err := t.children(brokersNews, cluster.BrokerIDsPath)
	if err != nil {
		return err
	}
	live, err := cluster.ReadBrokers(t.ctx, t.zk, names)
	var foreign *cluster.ForeignError
	if errors.As(err, &foreign) {
		t.c.cfg.Log.Error("a broker that is not ours has registered; it gets no replicas", "err", err)
	} else if err != nil {
		return err
	}
	t.core.setBrokers(live)
	return nil
}

// readTopics finds topics that are new (made by another tool, or all of them in a load) or gone.
func (t *term) readTopics() error {
	names, err := t.children(topicsNews, cluster.TopicsPath)
	if err != nil {
		return err
	}
	t.topicsAtMs = t.c.cfg.Clock.NowMs()
	var gone []string
	for name := range t.core.topics {
		if _, there := slices.BinarySearch(names, name); !there {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		t.forget(name)
	}
	var paths, fresh []string
	for _, name := range names {
		if t.core.topics[name] == nil {
			fresh = append(fresh, name)
			paths = append(paths, cluster.TopicPath(name))
		}
	}
	nodes, err := t.zk.GetMany(t.ctx, paths)
	if err != nil {
		return err
	}
	var added []*topic
	for i, n := range nodes {
		topic, err := t.addTopic(fresh[i], n)
		if err != nil {
			return err
		}
		if topic != nil {
			added = append(added, topic)
		}
	}
	return t.readStates(added)
}

// addTopic takes a topic's znode in. One that makes no sense is reported and left alone (nil).
func (t *term) addTopic(name string, n zkclient.Node) (*topic, error) {
	if isNoNode(n.Err) {
		return nil, nil
	}
	if n.Err != nil {
		return nil, n.Err
	}
	err := CheckTopicName(name)
	var a cluster.Assignment
	if err == nil {
		a, err = cluster.DecodeAssignment(n.Data)
	}
	if err != nil {
		t.c.cfg.Log.Error("a topic's znode is not usable; the topic is ignored", "topic", name, "err", err)
		return nil, nil
	}
	if a.ID == (store.UUID{}) {
		a.ID = cluster.NewUUID()
		_, err := t.multi(zkclient.SetOp(cluster.TopicPath(name), cluster.EncodeAssignment(a), n.Stat.Version))
		if err != nil {
			return nil, fmt.Errorf("give topic %s an id: %w", name, err)
		}
	}
	return t.core.setTopic(name, a, t.c.unclean(name)), nil
}

// readStates reads the state znodes of topics. A partition without one is new.
func (t *term) readStates(topics []*topic) error {
	var paths []string
	for _, topic := range topics {
		for i := range topic.parts {
			paths = append(paths, cluster.StatePath(topic.name, int32(i)))
		}
	}
	nodes, err := t.zk.GetMany(t.ctx, paths)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		for i := range topic.parts {
			n := nodes[0]
			nodes = nodes[1:]
			if isNoNode(n.Err) {
				continue
			}
			if n.Err != nil {
				return n.Err
			}
			s, err := cluster.DecodeState(n.Data)
			if err != nil {
				t.c.cfg.Log.Error("a partition's state is not usable; the topic is ignored", "path", n.Path, "err", err)
				t.core.removeTopic(topic.name)
				continue
			}
			t.core.setState(topic, i, s.At(n.Stat.Version, n.Stat.Mzxid))
		}
	}
	return nil
}

func (c *Controller) unclean(topic string) bool {
	return c.cfg.Unclean != nil && c.cfg.Unclean(topic)
}
