package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/engine/commitlog"
)

// configs are the overrides of topics and brokers, as last read. The inner maps are immutable. Of a topic's,
// only those are kept that check finds nothing wrong with: any tool may write there.
type configs struct {
	check func(topic string, overrides map[string]string) error
	log   func(msg string, args ...any)

	mu      sync.Mutex
	topics  map[string]map[string]string
	brokers map[string]map[string]string // "" is the cluster default
	last    string                       // path of the newest change that was acted on
	news    chan struct{}                // closed when last moves
	armed   atomic.Bool                  // a watch on the changes is set
	stale   atomic.Bool                  // changes may have come and gone unseen: everything is to be read
	waits   atomic.Bool                  // for changes to be old enough to be removed
}

func newConfigs(check func(string, map[string]string) error, log func(string, ...any)) *configs {
	return &configs{check: check, log: log, topics: map[string]map[string]string{}, brokers: map[string]map[string]string{},
		news: make(chan struct{})}
}

// topic gives a topic's overrides; nil when none are known.
func (c *configs) topic(name string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topics[name]
}

// broker gives all brokers' overrides, as Image.BrokerConfigs has them.
func (c *configs) broker() map[string]map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.brokers)
}

// put takes in one entity's value, and says whether that is a change.
func (c *configs) put(kind, name string, values map[string]string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.topics
	if kind == "brokers" {
		in = c.brokers
		if name == cluster.DefaultBrokersEntity {
			name = ""
		}
	}
	old, known := in[name]
	in[name] = values
	return !known || !maps.Equal(old, values)
}

// forget drops topics that were deleted: one of the same name will be read anew.
func (c *configs) forget(topics []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range topics {
		delete(c.topics, t)
	}
}

// keep drops all topics but these.
func (c *configs) keep(topics []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := make(map[string]map[string]string, len(topics))
	for _, t := range topics {
		if values, ok := c.topics[t]; ok {
			kept[t] = values
		}
	}
	c.topics = kept
}

// unknown are those of the topics that were never read.
func (c *configs) unknown(topics []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, t := range topics {
		if _, ok := c.topics[t]; !ok {
			out = append(out, t)
		}
	}
	return out
}

// begin reads all overrides, and where the changes stand that come after.
func (c *configs) begin(ctx context.Context, zk *session) error {
	names, _, err := zk.Children(ctx, cluster.ConfigChangesPath, nil)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, changePrefix) {
			c.last = cluster.ConfigChangePath(name)
		}
	}
	_, err = c.load(ctx, zk)
	return err
}

// load reads all overrides, those that are known among them, and gives the entities that changed.
func (c *configs) load(ctx context.Context, zk *session) (changed []string, err error) {
	entities := c.known()
	for _, kind := range []string{"topics", "brokers"} {
		names, _, err := zk.Children(ctx, "/config/"+kind, nil)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			entities = append(entities, kind+"/"+name)
		}
	}
	slices.Sort(entities)
	return c.read(ctx, zk, slices.Compact(entities))
}

// known are the entities that were read.
func (c *configs) known() (entities []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.topics {
		entities = append(entities, "topics/"+name)
	}
	for name := range c.brokers {
		if name == "" {
			name = cluster.DefaultBrokersEntity
		}
		entities = append(entities, "brokers/"+name)
	}
	return entities
}

// read reads entities ("topics/t") anew and gives those that changed. A value that makes no sense is
// reported, and the former one stays.
func (c *configs) read(ctx context.Context, zk *session, entities []string) (changed []string, err error) {
	paths := make([]string, len(entities))
	for i, e := range entities {
		paths[i] = "/config/" + e
	}
	nodes, err := zk.GetMany(ctx, paths)
	if err != nil {
		return nil, err
	}
	for i, n := range nodes {
		kind, name, _ := cluster.ConfigEntity(entities[i])
		values := map[string]string{} // a topic without a znode has none
		switch {
		case errors.Is(n.Err, zkclient.ErrNoNode):
		case n.Err != nil:
			return nil, n.Err
		default:
			if values, err = cluster.DecodeConfig(n.Data); err != nil {
				c.log("overrides are not usable; the former ones stay", "path", n.Path, "err", err)
				continue
			}
		}
		if kind == "topics" {
			values = c.sane(name, values)
		}
		if c.put(kind, name, values) {
			changed = append(changed, entities[i])
		}
	}
	return changed, nil
}

// sane leaves out what is wrong with a topic's overrides, reporting it.
func (c *configs) sane(topic string, values map[string]string) map[string]string {
	if c.check == nil || c.check(topic, values) == nil {
		return values
	}
	good := map[string]string{}
	for k, v := range values {
		if err := c.check(topic, map[string]string{k: v}); err != nil {
			c.log("a topic's override is not usable, and does not count", "topic", topic, "err", err)
			continue
		}
		good[k] = v
	}
	if err := c.check(topic, good); err != nil {
		c.log("a topic's overrides contradict each other, and do not count", "topic", topic, "err", err)
		return map[string]string{}
	}
	return good
}

// ensure reads the overrides of topics that are new.
func (c *configs) ensure(ctx context.Context, zk *session, topics []string) error {
	fresh := c.unknown(topics)
	if len(fresh) == 0 {
		return nil
	}
	for i, t := range fresh {
		fresh[i] = "topics/" + t
	}
	_, err := c.read(ctx, zk, fresh)
	return err
}

// ensureConfigs reads the overrides of topics that are new here; the controller may have decided without them.
func (n *Node) ensureConfigs(ctx context.Context, topics []string) error {
	if len(n.configs.unknown(topics)) == 0 {
		return nil
	}
	err := n.configs.ensure(ctx, n.zk.Load(), topics)
	if err == nil && n.started.Load() {
		n.control.Reconfigured()
	}
	return err
}

// reconfigure gives changed overrides to the replicas and the image; not while a push makes replicas by
// the former ones.
func (n *Node) reconfigure(entities []string) {
	n.local.mu.Lock()
	defer n.local.mu.Unlock()
	brokers := false
	for _, e := range entities {
		kind, name, _ := cluster.ConfigEntity(e)
		if kind == "brokers" {
			brokers = true
			continue
		}
		values := n.configs.topic(name)
		n.cfg.Log.Info("topic is reconfigured", "topic", name, "overrides", values)
		n.Host().Reconfigure(name, n.cfg.LogConfig(values), n.cfg.MinISR(values))
		n.changeImage(func(i *cluster.Image) *cluster.Image { return i.WithTopicConfigs(name, values) })
	}
	if brokers {
		values := n.configs.broker()
		n.cfg.Log.Info("brokers are reconfigured", "overrides", values)
		n.applyDynamic(n.id)
		n.Host().ReconfigureAll(func(topic string) (commitlog.Config, int) {
			overrides := n.configs.topic(topic)
			return n.cfg.LogConfig(overrides), n.cfg.MinISR(overrides)
		})
		n.changeImage(func(i *cluster.Image) *cluster.Image { return i.WithBrokerConfigs(values) })
	}
	if len(entities) > 0 {
		n.control.Reconfigured()
	}
}

// changeImage replaces the image by what f makes of it.
func (n *Node) changeImage(f func(*cluster.Image) *cluster.Image) {
	for {
		old := n.image.Load()
		if n.image.CompareAndSwap(old, f(old)) {
			return
		}
	}
}
