package tree

import (
	"sync"

	"platter/coord/zk"
)

// WatchKind is what a watch waits for.
type WatchKind uint8

// Kinds.
const (
	WatchData  WatchKind = iota // set by getData and exists
	WatchChild                  // set by getChildren
	watchKinds
)

// Watches is who waits for what: one-shot watches by path. W is a watcher, a connection. It is safe
// for concurrent use. It is no part of the replicated state: watches live and die with connections.
type Watches[W comparable] struct {
	mu     sync.Mutex
	byPath [watchKinds]map[string]map[W]struct{}
	of     map[W]*watched
	bytes  int
}

// watched is what one watcher waits for.
type watched struct {
	set   map[watch]struct{}
	bytes int
}

type watch struct {
	kind WatchKind
	path string
}

// bytes is about what a watch takes in memory.
func (x watch) bytes() int { return 200 + len(x.path) }

// NewWatches is an empty table.
func NewWatches[W comparable]() *Watches[W] {
	w := &Watches[W]{of: map[W]*watched{}}
	for k := range w.byPath {
		w.byPath[k] = map[string]map[W]struct{}{}
	}
	return w
}

// Add sets a watch; set twice it still fires once. It tells about how many bytes of memory the
// watcher's watches take now, and how many those of all.
func (w *Watches[W]) Add(kind WatchKind, path string, who W) (mine, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := w.of[who]
	if has == nil {
		has = &watched{set: map[watch]struct{}{}}
		w.of[who] = has
	}
	x := watch{kind, path}
	if _, twice := has.set[x]; twice {
		return has.bytes, w.bytes
	}
	has.set[x] = struct{}{}
	has.bytes += x.bytes()
	w.bytes += x.bytes()
	at := w.byPath[kind][path]
	if at == nil {
		at = map[W]struct{}{}
		w.byPath[kind][path] = at
	}
	at[who] = struct{}{}
	return has.bytes, w.bytes
}

// Remove forgets all of one watcher's.
func (w *Watches[W]) Remove(who W) {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := w.of[who]
	if has == nil {
		return
	}
	for x := range has.set {
		at := w.byPath[x.kind][x.path]
		if delete(at, who); len(at) == 0 {
			delete(w.byPath[x.kind], x.path)
		}
	}
	w.bytes -= has.bytes
	delete(w.of, who)
}

// Fire removes the watches that c sets off and calls tell for each, in ZooKeeper's order: the node's
// own watches first (a deletion tells a watcher once, whatever it waited for), then the parent's. Who
// may not read a node is not told of it, and loses the watch all the same (CVE-2024-23944).
func (w *Watches[W]) Fire(c Change, tell func(who W, typ zk.EventType, path string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.take(WatchData, c.Path)
	if c.Type == zk.EventDeleted {
		for who := range w.take(WatchChild, c.Path) {
			if own == nil {
				own = map[W]struct{}{}
			}
			own[who] = struct{}{}
		}
	}
	if c.acl.allows(zk.PermRead) {
		for who := range own {
			tell(who, c.Type, c.Path)
		}
	}
	if c.Type == zk.EventDataChanged {
		return
	}
	parent, _ := split(c.Path)
	if parent == "" {
		parent = "/"
	}
	at := w.take(WatchChild, parent)
	if c.parent.allows(zk.PermRead) {
		for who := range at {
			tell(who, zk.EventChildrenChanged, parent)
		}
	}
}

// take removes and gives the watchers of one kind on a path.
func (w *Watches[W]) take(kind WatchKind, path string) map[W]struct{} {
	at, x := w.byPath[kind][path], watch{kind, path}
	delete(w.byPath[kind], path)
	w.bytes -= len(at) * x.bytes()
	for who := range at {
		has := w.of[who]
		has.bytes -= x.bytes()
		if delete(has.set, x); len(has.set) == 0 {
			delete(w.of, who)
		}
	}
	return at
}
