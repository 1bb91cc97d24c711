package cluster

import (
	"maps"
	"slices"

	"platter/engine/store"
)

// Update is what one push of the controller says of the cluster (Kafka's UpdateMetadata).
type Update struct {
	ControllerID    int32
	ControllerEpoch int32
	Full            bool     // topics that are not named are gone
	Brokers         []Broker // all live brokers, in any order
	Topics          []TopicUpdate
}

// TopicUpdate is what changed of one topic.
type TopicUpdate struct {
	Name       string
	ID         store.UUID
	Deleted    bool
	Partitions map[int32]Partition
}

// Apply makes the image that follows from an update. configs gives a topic's overrides.
func (i *Image) Apply(u Update, configs func(topic string) map[string]string) *Image {
	next := *i
	next.ControllerID, next.ControllerEpoch = u.ControllerID, u.ControllerEpoch
	next.Brokers = slices.Clone(u.Brokers)
	slices.SortFunc(next.Brokers, func(a, b Broker) int { return int(a.ID) - int(b.ID) })
	if u.Full {
		next.Topics = make(map[string]*Topic, len(u.Topics))
		next.ByID = make(map[store.UUID]*Topic, len(u.Topics))
	} else if len(u.Topics) > 0 {
		next.own()
	}
	gaps := gapsMax
	for n := range u.Topics {
		next.put(&u.Topics[n], configs, &gaps)
	}
	return &next
}

// WithTopicConfigs gives one topic new overrides.
func (i *Image) WithTopicConfigs(topic string, configs map[string]string) *Image {
	old := i.Topics[topic]
	if old == nil {
		return i
	}
	next := *i
	next.own()
	t := *old
	t.Configs = configs
	next.set(&t)
	return &next
}

// WithBrokerConfigs replaces the dynamic broker settings.
func (i *Image) WithBrokerConfigs(configs map[string]map[string]string) *Image {
	next := *i
	next.BrokerConfigs = configs
	return &next
}

// own copies the maps, which are shared with the image before.
func (i *Image) own() {
	i.Topics, i.ByID = maps.Clone(i.Topics), maps.Clone(i.ByID)
	if i.Topics == nil {
		i.Topics, i.ByID = make(map[string]*Topic), make(map[store.UUID]*Topic)
	}
}

func (i *Image) set(t *Topic) {
	if old := i.Topics[t.Name]; old != nil && old.ID != t.ID {
		delete(i.ByID, old.ID)
	}
	i.Topics[t.Name] = t
	if t.ID != (store.UUID{}) {
		i.ByID[t.ID] = t
	}
}

// gapsMax bounds the partitions that an update skips, all of its topics together: a number alone, which may come from
// anybody, takes no memory.
const gapsMax = 1 << 16

func (i *Image) put(u *TopicUpdate, configs func(topic string) map[string]string, gaps *int) {
	old := i.Topics[u.Name]
	if u.Deleted {
		if old != nil {
			delete(i.Topics, u.Name)
			delete(i.ByID, old.ID)
		}
		return
	}
	t := &Topic{Name: u.Name, ID: u.ID, Configs: configs(u.Name)}
	if old != nil && old.ID == u.ID {
		t.Partitions = slices.Clone(old.Partitions)
	}
	last := int32(-1)
	for p := range u.Partitions {
		last = max(last, p)
	}
	if *gaps -= max(int(last)+1-len(t.Partitions)-len(u.Partitions), 0); *gaps < 0 {
		*gaps = 0
		return
	}
	for p, s := range u.Partitions {
		if p < 0 {
			continue
		}
		for int(p) >= len(t.Partitions) {
			t.Partitions = append(t.Partitions, Partition{Leader: -1, LeaderEpoch: -1})
		}
		t.Partitions[p] = s
	}
	i.set(t)
}
