package node

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"platter/coord/cluster"
	"platter/coord/zkclient"
)

// changeExpiry is how long a config change stands in /config/changes before some broker removes it
// (ZkNodeChangeNotificationListener).
const changeExpiry = 15 * time.Minute

const (
	changesMax   = 1000             // changes that stand for longer than surplusAge: a listing must fit into jute.maxbuffer
	surplusAge   = 30 * time.Second // no change is removed before: brokers that are connected have seen it by then
	expireAtOnce = 100              // changes whose age is looked at in one go
)

// changePrefix begins the names of changes; ten digits follow, each change's one more than those of the change before.
const changePrefix = "config_change_"

// readConfigs acts on /config/changes: what a change names is read anew, and old changes are removed. When changes may have
// come and gone unseen, while the broker had no connection or was slow, everything is read.
func (n *Node) readConfigs() {
	if err := n.applyConfigChanges(); err != nil && n.life.Err() == nil && !errors.Is(err, zkclient.ErrSessionExpired) {
		n.log("changed overrides could not be read; will try again", "err", err)
		n.again(configNews)
	}
}

func (n *Node) applyConfigChanges() error {
	zk := n.zk.Load()
	c := n.configs
	acted, fresh, err := n.listChanges(zk)
	if err != nil {
		return err
	}
	changed, err := n.readChanges(zk, fresh)
	if err != nil {
		return err
	}
	n.reconfigure(changed)
	if len(fresh) > 0 {
		c.reach(fresh[len(fresh)-1])
	}
	// The last listing may be the last event for long: what it brought counts too.
	n.expireChanges(zk, append(acted, fresh...))
	return nil
}

// listChanges gives the paths of the changes that were acted on and of those that were not, by age, and watches for more.
func (n *Node) listChanges(zk *session) (acted, fresh []string, err error) {
	c := n.configs
	var watch func(zkclient.Event)
	if c.armed.CompareAndSwap(false, true) {
		watch = func(zkclient.Event) {
			c.armed.Store(false)
			n.raise(configNews)
		}
	}
	names, _, err := zk.Children(n.life, cluster.ConfigChangesPath, watch)
	if err != nil {
		if watch != nil {
			c.armed.Store(false)
		}
		return nil, nil, err
	}
	for _, name := range names { // sorted
		switch path := cluster.ConfigChangePath(name); {
		case !strings.HasPrefix(name, changePrefix):
		case path <= c.last: // nobody else writes it
			acted = append(acted, path)
		default:
			fresh = append(fresh, path)
		}
	}
	return acted, fresh, nil
}

// readChanges reads what changes name, or everything, and gives the entities that are others now.
func (n *Node) readChanges(zk *session, fresh []string) (changed []string, err error) {
	c := n.configs
	nodes, err := zk.GetMany(n.life, fresh)
	if err != nil {
		return nil, err
	}
	var entities []string
	missed := gap(c.last, fresh)
	for _, node := range nodes {
		if node.Err != nil {
			missed = true // removed since it was listed
			continue
		}
		entity, err := cluster.DecodeConfigChange(node.Data)
		if err != nil {
			n.log("a config change is not usable", "path", node.Path, "err", err)
			continue
		}
		if kind, _, ok := cluster.ConfigEntity(entity); ok && (kind == "topics" || kind == "brokers") {
			entities = append(entities, entity)
		}
	}
	if stale := c.stale.Swap(false); !stale && !missed {
		return c.read(n.life, zk, entities)
	}
	if changed, err = c.load(n.life, zk); err != nil {
		c.stale.Store(true)
	}
	return changed, err
}

// gap says whether changes are missing between last ("": none was ever seen) and paths, or among these.
func gap(last string, paths []string) bool {
	want := changeNumber(last) + 1
	for _, path := range paths {
		if changeNumber(path) != want {
			return true
		}
		want++
	}
	return false
}

// changeNumber is -1 for what has none.
func changeNumber(path string) int64 {
	v, err := strconv.ParseInt(path[strings.LastIndexByte(path, '_')+1:], 10, 64)
	if err != nil {
		return -1
	}
	return v
}

// expireChanges removes changes that all brokers have had time to see, of those that were acted on here (by
// age): the old ones, and what is more than a listing should have. Failing is no harm: others do it too,
// and there is a next time.
func (n *Node) expireChanges(zk *session, acted []string) {
	surplus := max(0, len(acted)-changesMax)
	nodes, err := zk.GetMany(n.life, acted[:min(len(acted), max(surplus, expireAtOnce))])
	if err != nil {
		return
	}
	for i, node := range nodes {
		age := time.Duration(n.cfg.Clock.NowMs()-node.Stat.Ctime) * time.Millisecond
		switch {
		case node.Err != nil:
		case i < surplus && age > surplusAge, age > changeExpiry:
			if err := zk.Delete(n.life, node.Path, -1); err != nil {
				return
			}
		case i < surplus: // and the others are younger
			if n.configs.waits.CompareAndSwap(false, true) {
				n.cfg.Clock.AfterFunc(surplusAge, func() {
					n.configs.waits.Store(false)
					n.raise(configNews)
				})
			}
			return
		}
	}
}
