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
	of     map[W]map[watch]struct{}
}

type watch struct {
	kind WatchKind
	path string
}

// NewWatches is an empty table.
func NewWatches[W comparable]() *Watches[W] {
	w := &Watches[W]{of: map[W]map[watch]struct{}{}}
	for k := range w.byPath {
		w.byPath[k] = map[string]map[W]struct{}{}
	}
	return w
}

// Add sets a watch; set twice it still fires once.
func (w *Watches[W]) Add(kind WatchKind, path string, who W) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.byPath[kind][path]
	if at == nil {
		at = map[W]struct{}{}
		w.byPath[kind][path] = at
	}
	at[who] = struct{}{}
	mine := w.of[who]
	if mine == nil {
		mine = map[watch]struct{}{}
		w.of[who] = mine
	}
	mine[watch{kind, path}] = struct{}{}
}

// Remove forgets all of one watcher's.
func (w *Watches[W]) Remove(who W) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := range w.of[who] {
		at := w.byPath[x.kind][x.path]
		if delete(at, who); len(at) == 0 {
			delete(w.byPath[x.kind], x.path)
		}
	}
	delete(w.of, who)
}

// Count tells how many watchers, watched paths and watches there are.
func (w *Watches[W]) Count() (watchers, paths, watches int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]struct{}{}
	for _, byPath := range w.byPath {
		for p, at := range byPath {
			seen[p] = struct{}{}
			watches += len(at)
		}
	}
	return len(w.of), len(seen), watches
}

// CountOf tells how many watches one watcher has.
func (w *Watches[W]) CountOf(who W) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.of[who])
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
	at := w.byPath[kind][path]
	delete(w.byPath[kind], path)
	for who := range at {
		mine := w.of[who]
		if delete(mine, watch{kind, path}); len(mine) == 0 {
			delete(w.of, who)
		}
	}
	return at
}
