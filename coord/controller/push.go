package controller

import (
	"cmp"
	"slices"
	"strings"

	"platter/coord/cluster"
	"platter/engine/store"
)

// push is what one broker has to hear; headers are filled in by the driver.
type push struct {
	to     cluster.Broker
	lead   *LeaderAndISR // nil: nothing
	update *UpdateMetadata
	asks   bool // lead names replicas that the broker could not serve
}

// pushes gives what has to be told since the last call, by broker id. A broker that registered hears
// everything, the others what changed.
func (c *core) pushes() []push {
	changes := len(c.dirty) > 0 || len(c.deleted) > 0 || c.listed
	if !changes && len(c.full) == 0 && len(c.asked) == 0 {
		return nil
	}
	live := c.liveBrokers()
	changed := c.changedTopics(live)
	moved := c.moved()
	var all []store.TP
	var whole []cluster.TopicUpdate
	var out []push
	for _, b := range live {
		if !changes && !c.full[b.ID] && !c.asked[b.ID] {
			continue
		}
		p := push{to: b, update: &UpdateMetadata{Update: cluster.Update{Brokers: live, Topics: changed}}}
		var states []PartitionState
		if c.full[b.ID] {
			if whole == nil {
				all, whole = c.allPartitions(), c.allTopics(live)
			}
			p.update.Update.Full, p.update.Update.Topics = true, whole
			states = c.statesFor(b.ID, all)
		} else {
			states = c.statesFor(b.ID, moved)
		}
		if c.ailing[b.ID] && (c.full[b.ID] || c.asked[b.ID]) {
			lost := c.lostBy(b.ID)
			states, p.asks = append(states, lost...), len(lost) > 0
		}
		if c.full[b.ID] || len(states) > 0 {
			p.lead = &LeaderAndISR{Full: c.full[b.ID], Partitions: states}
		}
		out = append(out, p)
	}
	clear(c.dirty)
	clear(c.isNew)
	clear(c.deleted)
	clear(c.full)
	clear(c.asked)
	c.listed = false
	return out
}

// statesFor are those of the partitions that a broker has, and can serve as far as is known.
func (c *core) statesFor(broker int32, tps []store.TP) []PartitionState {
	var out []PartitionState
	for _, tp := range tps {
		p := c.partition(tp)
		if p == nil || !p.exists || !slices.Contains(p.replicas, broker) || slices.Contains(p.offline, broker) {
			continue
		}
		out = append(out, c.stateOf(tp, p))
	}
	return out
}

// lostBy are the partitions that a broker has and could not serve.
func (c *core) lostBy(broker int32) []PartitionState {
	var out []PartitionState
	for _, tp := range c.allPartitions() {
		if p := c.partition(tp); p.exists && slices.Contains(p.offline, broker) {
			out = append(out, c.stateOf(tp, p))
		}
	}
	return out
}

func (c *core) stateOf(tp store.TP, p *partition) PartitionState {
	return PartitionState{
		TP: tp, TopicID: c.topics[tp.Topic].id, State: p.state, PartitionEpoch: p.state.ZkVersion,
		Replicas: p.replicas, Adding: p.adding, Removing: p.removing, New: c.isNew[tp],
	}
}

// moved are the partitions whose state changed, by topic and partition.
func (c *core) moved() []store.TP {
	var out []store.TP
	for tp, state := range c.dirty {
		if state {
			out = append(out, tp)
		}
	}
	slices.SortFunc(out, func(a, b store.TP) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

func (c *core) allPartitions() []store.TP {
	var out []store.TP
	for _, name := range sortedKeys(c.topics) {
		t := c.topics[name]
		for i := range t.parts {
			if !t.deleting {
				out = append(out, store.TP{Topic: name, Partition: int32(i)})
			}
		}
	}
	return out
}

// changedTopics is the metadata of what is dirty or gone.
func (c *core) changedTopics(live []cluster.Broker) []cluster.TopicUpdate {
	byTopic := map[string]*cluster.TopicUpdate{}
	for tp := range c.dirty {
		t := c.topics[tp.Topic]
		if t == nil || !t.parts[tp.Partition].exists {
			continue
		}
		u := byTopic[tp.Topic]
		if u == nil {
			u = &cluster.TopicUpdate{Name: t.name, ID: t.id, Partitions: map[int32]cluster.Partition{}}
			byTopic[tp.Topic] = u
		}
		u.Partitions[tp.Partition] = t.parts[tp.Partition].metadata(live)
	}
	for name, id := range c.deleted {
		byTopic[name] = &cluster.TopicUpdate{Name: name, ID: id, Deleted: true}
	}
	var out []cluster.TopicUpdate
	for _, name := range sortedKeys(byTopic) {
		out = append(out, *byTopic[name])
	}
	return out
}

func (c *core) allTopics(live []cluster.Broker) []cluster.TopicUpdate {
	out := make([]cluster.TopicUpdate, 0, len(c.topics))
	for _, name := range sortedKeys(c.topics) {
		t := c.topics[name]
		if t.deleting {
			continue
		}
		u := cluster.TopicUpdate{Name: t.name, ID: t.id, Partitions: make(map[int32]cluster.Partition, len(t.parts))}
		for i := range t.parts {
			if t.parts[i].exists {
				u.Partitions[int32(i)] = t.parts[i].metadata(live)
			}
		}
		if len(u.Partitions) > 0 {
			out = append(out, u)
		}
	}
	return out
}

// metadata is the partition as clients see it. Replicas on brokers that are not there, or whose directory
// failed, are offline.
func (p *partition) metadata(live []cluster.Broker) cluster.Partition {
	m := cluster.Partition{
		Leader:          p.state.Leader,
		LeaderEpoch:     p.state.LeaderEpoch,
		ControllerEpoch: p.state.ControllerEpoch,
		ISR:             p.state.ISR,
		Replicas:        p.replicas,
		ZkVersion:       p.state.ZkVersion,
	}
	for _, id := range p.replicas {
		alive := slices.ContainsFunc(live, func(b cluster.Broker) bool { return b.ID == id })
		if !alive || slices.Contains(p.offline, id) {
			m.OfflineReplicas = append(m.OfflineReplicas, id)
		}
	}
	return m
}
