package zkclient

import (
	"maps"
	"slices"
	"strings"

	"platter/coord/zk"
)

// watchKind is how SetWatches lists a watch.
type watchKind int

const (
	dataWatch  watchKind = iota // on a node that was there
	existWatch                  // on a node that was missing
	childWatch
	watchKinds
)

// watcher is one callback; path is the caller's, without the chroot.
type watcher struct {
	path string
	call func(Event)
}

// watchTable is what is watched, by full path.
type watchTable struct {
	once    [watchKinds]map[string][]watcher
	staying map[string][]*stayingWatcher
	asked   map[string]int // requests in flight that may leave a watch
}

func newWatchTable() (t watchTable) {
	for k := range t.once {
		t.once[k] = map[string][]watcher{}
	}
	t.staying = map[string][]*stayingWatcher{}
	t.asked = map[string]int{}
	return t
}

func (t *watchTable) add(k watchKind, full string, w watcher) {
	t.once[k][full] = append(t.once[k][full], w)
}

// take removes and gives the one-shot watchers that an event is for.
func (t *watchTable) take(typ EventType, full string) (ws []watcher) {
	kinds := []watchKind{dataWatch, existWatch}
	switch typ {
	case NodeDeleted:
		kinds = append(kinds, childWatch)
	case NodeChildrenChanged:
		kinds = []watchKind{childWatch}
	}
	for _, k := range kinds {
		ws = append(ws, t.once[k][full]...)
		delete(t.once[k], full)
	}
	return ws
}

// used reports whether anybody waits for something at a path, or has asked to: but for so many who have asked.
func (t *watchTable) used(full string, but int) bool {
	for k := range t.once {
		if len(t.once[k][full]) > 0 {
			return true
		}
	}
	return len(t.staying[full]) > 0 || t.asked[full] > but
}

// takeAll empties the table.
func (t *watchTable) takeAll() (ws []watcher) {
	for k := range t.once {
		for _, path := range slices.Sorted(maps.Keys(t.once[k])) {
			ws = append(ws, t.once[k][path]...)
		}
		clear(t.once[k])
	}
	for _, path := range slices.Sorted(maps.Keys(t.staying)) {
		for _, w := range t.staying[path] {
			ws = append(ws, w.watcher)
		}
	}
	clear(t.staying)
	return ws
}

// setWatches lists all that is watched, in requests of about maxBytes each.
func (t *watchTable) setWatches(maxBytes int) (qs []zk.SetWatches) {
	var q zk.SetWatches
	bytes := 0
	add := func(list *[]string, path string) {
		if bytes > maxBytes {
			qs, q, bytes = append(qs, q), zk.SetWatches{}, 0
		}
		*list = append(*list, path)
		bytes += 4 + len(path)
	}
	for k, list := range [watchKinds]*[]string{&q.Data, &q.Exist, &q.Child} {
		for path := range t.once[k] {
			add(list, path)
		}
	}
	for path, ws := range t.staying {
		if slices.ContainsFunc(ws, func(w *stayingWatcher) bool { return !w.recursive }) {
			add(&q.Persistent, path)
		}
		if slices.ContainsFunc(ws, func(w *stayingWatcher) bool { return w.recursive }) {
			add(&q.PersistentRecursive, path)
		}
	}
	if bytes > 0 {
		qs = append(qs, q)
	}
	return qs
}

// setWatchesOp is the operation that a request needs: older servers know only the first.
func setWatchesOp(q *zk.SetWatches) zk.Op {
	if len(q.Persistent)+len(q.PersistentRecursive) > 0 {
		return zk.OpSetWatches2
	}
	return zk.OpSetWatches
}

// fire hands an event to its watchers.
func (c *Client) fire(d *zk.Decoder) {
	var e zk.WatcherEvent
	if e.Decode(d); d.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watches.take(EventType(e.Type), e.Path) {
		c.notify.add(func() { w.call(Event{Type: EventType(e.Type), Path: w.path}) })
	}
	if strings.HasPrefix(e.Path, "/") {
		c.tellStaying(EventType(e.Type), e.Path)
	}
}

// settle counts a request as answered which might have left a watch.
func (c *Client) settle(full string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches.asked[full]--; c.watches.asked[full] <= 0 {
		delete(c.watches.asked, full)
	}
}

// watch sets a watcher, unless the client is dead: then it is told at once.
func (c *Client) watch(k watchKind, full string, w watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go w.call(Event{Type: SessionLost, Path: w.path})
		return
	}
	c.watches.add(k, full, w)
}
