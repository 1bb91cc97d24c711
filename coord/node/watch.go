package node

import (
	"sync/atomic"

	"platter/coord/cluster"
	"platter/coord/controller"
)

// Watcher is told what the controller has changed on this broker. Its methods are called while the
// controller waits: they must be quick.
type Watcher interface {
	// RolesChanged: this broker may lead or follow other partitions of the topics than before; nil: of any
	// topic.
	RolesChanged(topics []string)
	// TopicsDeleted: the topics are gone, or are others of the same name now.
	TopicsDeleted(topics []string)
}

// watcher is who is told; nil: nobody yet.
type watcher = atomic.Pointer[Watcher]

// Watch makes w be told from now on; what it finds at that moment it looks up itself.
func (n *Node) Watch(w Watcher) { n.watcher.Store(&w) }

func (n *Node) rolesChanged(topics []string) {
	if w := n.watcher.Load(); w != nil {
		(*w).RolesChanged(topics)
	}
}

// imageChanged tells of topics that the update took away.
func (n *Node) imageChanged(before, after *cluster.Image, u *cluster.Update) {
	w := n.watcher.Load()
	if w == nil {
		return
	}
	var gone []string
	look := func(name string) {
		if old, now := before.Topics[name], after.Topics[name]; old != nil && (now == nil || now.ID != old.ID) {
			gone = append(gone, name)
		}
	}
	if u.Full {
		for name := range before.Topics {
			look(name)
		}
	} else {
		for i := range u.Topics {
			look(u.Topics[i].Name)
		}
	}
	if len(gone) > 0 {
		(*w).TopicsDeleted(gone)
	}
}

// topicsOf is the topics of partitions, each once where they stand together.
func topicsOf(parts []controller.StopPartition) []string {
	out := []string{}
	for i := range parts {
		if n := len(out); n == 0 || out[n-1] != parts[i].TP.Topic {
			out = append(out, parts[i].TP.Topic)
		}
	}
	return out
}
