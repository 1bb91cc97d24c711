package controller

import (
	"maps"
	"slices"
	"strings"

	"platter/coord/cluster"
	"platter/engine/store"
)

// core is the controller's picture of the cluster, and what follows from it. It decides; the driver
// reads and writes znodes and talks to brokers. The round is: tell it news (setBrokers, setTopic,
// replicaOffline …), take the state changes that it wants (elections), write them, commit those that
// were written, and take the pushes.
//
// It is used by one goroutine, and has no clock, socket or goroutine inside.
type core struct {
	brokers map[int32]cluster.Broker
	topics  map[string]*topic
	names   map[string]int  // topics by collisionKey
	newest  int64           // the latest broker epoch that was seen
	due     map[string]bool // topics to look at in the next elections

	rotation int // where the next topic's placement starts

	// What has to be pushed: partitions (true: to their replicas too, false: only as metadata), topics
	// that are gone, brokers that have to hear everything, and whether the list of brokers changed.
	dirty   map[store.TP]bool
	isNew   map[store.TP]bool
	deleted map[string]store.UUID
	full    map[int32]bool
	listed  bool
	asked   map[int32]bool // brokers that have to hear again of replicas that they could not serve

	ailing  map[int32]bool  // brokers that could not serve some replica
	leaving map[int32]int64 // brokers that shut down, by the epoch of their registration
}

type topic struct {
	name      string
	id        store.UUID
	parts     []partition
	unclean   bool
	container bool // the znode "partitions" is there, though no partition is
	deleting  bool
}

// change is one state to write.
type change struct {
	tp    store.TP
	state cluster.State // ZkVersion is the one to write against
	isNew bool
}

func newCore() *core {
	return &core{
		brokers: map[int32]cluster.Broker{},
		topics:  map[string]*topic{},
		names:   map[string]int{},
		due:     map[string]bool{},
		dirty:   map[store.TP]bool{},
		isNew:   map[store.TP]bool{},
		deleted: map[string]store.UUID{},
		full:    map[int32]bool{},
		asked:   map[int32]bool{},
		ailing:  map[int32]bool{},
		leaving: map[int32]int64{},
	}
}

// setBrokers tells who is registered now.
func (c *core) setBrokers(live []cluster.Broker) {
	next := make(map[int32]cluster.Broker, len(live))
	for _, b := range live {
		next[b.ID] = b
		old, known := c.brokers[b.ID]
		if !known || old.Epoch != b.Epoch {
			c.full[b.ID] = true
			c.touch(b.ID)
		}
		c.newest = max(c.newest, b.Epoch)
	}
	for id := range c.brokers {
		if _, ok := next[id]; !ok {
			delete(c.full, id)
			c.touch(id)
		}
	}
	c.brokers = next
}

// touch notes that a broker came or went. Its replicas are all online or all offline now: when it came,
// then with all the directories it has.
func (c *core) touch(broker int32) {
	c.listed = true
	delete(c.ailing, broker)
	delete(c.asked, broker)
	for _, t := range c.topics {
		for i := range t.parts {
			p := &t.parts[i]
			if t.deleting || !slices.Contains(p.replicas, broker) {
				continue
			}
			c.due[t.name] = true
			p.offline = slices.DeleteFunc(p.offline, func(id int32) bool { return id == broker })
			c.show(store.TP{Topic: t.name, Partition: int32(i)})
		}
	}
}

// show marks a partition's metadata for the next push.
func (c *core) show(tp store.TP) {
	if _, ok := c.dirty[tp]; !ok {
		c.dirty[tp] = false
	}
}

// setTopic puts a topic in as its znode says; partitions that are known keep their state.
func (c *core) setTopic(name string, a cluster.Assignment, unclean bool) *topic {
	t := c.topics[name]
	if t != nil && t.id != a.ID {
		c.removeTopic(name)
		t = nil
	}
	if t == nil {
		t = &topic{name: name, id: a.ID}
		c.topics[name] = t
		c.names[collisionKey(name)]++
		delete(c.deleted, name)
	}
	t.unclean = unclean
	c.due[name] = true
	for i, replicas := range a.Replicas {
		if i == len(t.parts) {
			t.parts = append(t.parts, partition{})
		}
		p := &t.parts[i]
		p.replicas, p.adding, p.removing = replicas, a.Adding[int32(i)], a.Removing[int32(i)]
	}
	return t
}

// allowUnclean asks of all topics whether they allow unclean election, and says whether any is to be looked at.
func (c *core) allowUnclean(of func(topic string) bool) bool {
	news := false
	for name, t := range c.topics {
		if now := of(name); now != t.unclean {
			t.unclean = now
			c.due[name] = true
			news = true
		}
	}
	return news
}

// setState puts in what a state znode says.
func (c *core) setState(t *topic, p int, s cluster.State) {
	t.parts[p].exists, t.parts[p].state = true, s
	c.due[t.name] = true
}

// removeTopic takes a topic out of the picture; brokers hear that it is gone.
func (c *core) removeTopic(name string) {
	t := c.topics[name]
	if t == nil {
		return
	}
	c.hide(t) // no-op, and long pushed, when the topic was deleted
	delete(c.topics, name)
	if key := collisionKey(name); c.names[key] > 1 {
		c.names[key]--
	} else {
		delete(c.names, key)
	}
}

// hide makes a topic unknown to clients, at once, while its replicas and znodes are being removed.
func (c *core) hide(t *topic) {
	if t.deleting {
		return
	}
	t.deleting = true
	c.deleted[t.name] = t.id
	for i := range t.parts {
		tp := store.TP{Topic: t.name, Partition: int32(i)}
		delete(c.dirty, tp)
		delete(c.isNew, tp)
	}
}

// replicaOffline tells that a broker cannot serve a replica: its directory failed, is full, or does not answer. True: that
// is new.
func (c *core) replicaOffline(broker int32, tp store.TP) bool {
	p := c.partition(tp)
	if p == nil || slices.Contains(p.offline, broker) || !slices.Contains(p.replicas, broker) {
		return false
	}
	p.offline = append(p.offline, broker)
	c.ailing[broker] = true
	c.due[tp.Topic] = true
	c.show(tp)
	return true
}

// replicaOnline tells that a broker serves a replica. True: it could not before.
func (c *core) replicaOnline(broker int32, tp store.TP) bool {
	p := c.partition(tp)
	if p == nil || !slices.Contains(p.offline, broker) {
		return false
	}
	p.offline = slices.DeleteFunc(p.offline, func(id int32) bool { return id == broker })
	c.due[tp.Topic] = true
	c.show(tp)
	return true
}

// askAgain has all brokers that could not serve some replicas told of those.
func (c *core) askAgain() {
	clear(c.ailing)
	for _, tp := range c.allPartitions() {
		for _, id := range c.partition(tp).offline {
			c.ailing[id] = true
		}
	}
	maps.Copy(c.asked, c.ailing)
}

// recheck has a broker told all its partitions again: some of its replicas may be offline, or online again.
func (c *core) recheck(broker int32) {
	if _, live := c.brokers[broker]; live {
		c.full[broker] = true
	}
}

// elections gives the changes that are due, by topic and partition. They are due until they are
// committed.
func (c *core) elections() []change {
	var out []change
	for _, name := range sortedKeys(c.due) {
		t := c.topics[name]
		if t == nil || t.deleting {
			delete(c.due, name)
			continue
		}
		before := len(out)
		for i := range t.parts {
			p := &t.parts[i]
			if s, changed := p.elect(c.standingFor(p), t.unclean); changed {
				out = append(out, change{tp: store.TP{Topic: name, Partition: int32(i)}, state: s, isNew: !p.exists})
			}
		}
		if len(out) == before {
			delete(c.due, name)
		}
	}
	return out
}

// standingFor judges brokers for one partition: a state that was decided without knowing a broker's registration was
// decided about an earlier life of it.
func (c *core) standingFor(p *partition) func(int32) standing {
	return func(id int32) standing {
		b, ok := c.brokers[id]
		switch {
		case !ok:
			return dead
		case c.isLeaving(id) && (c.othersInSync(p, id) || !p.exists && c.othersStay(p, id)):
			return dead
		case p.exists && p.state.Known < b.Epoch:
			return rejoined
		}
		return fresh
	}
}

// commit takes over a change that was written; version is the znode's now.
func (c *core) commit(ch change, controllerEpoch, version int32) {
	p := c.partition(ch.tp)
	if p == nil {
		return
	}
	p.exists = true
	p.state = ch.state
	p.state.ControllerEpoch = controllerEpoch
	p.state.ZkVersion = version
	p.state.Known = c.newest
	c.dirty[ch.tp] = true
	if ch.isNew {
		c.isNew[ch.tp] = true
	}
}

func (c *core) partition(tp store.TP) *partition {
	t := c.topics[tp.Topic]
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.parts) {
		return nil
	}
	return &t.parts[tp.Partition]
}

// liveBrokers are sorted by id.
func (c *core) liveBrokers() []cluster.Broker {
	out := make([]cluster.Broker, 0, len(c.brokers))
	for _, b := range c.brokers {
		out = append(out, b)
	}
	return sortedByID(out)
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
