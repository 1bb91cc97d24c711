package zkclient

import (
	"maps"
	"slices"

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
type watchTable [watchKinds]map[string][]watcher

func newWatchTable() (t watchTable) {
	for k := range t {
		t[k] = map[string][]watcher{}
	}
	return t
}

func (t *watchTable) add(k watchKind, full string, w watcher) { t[k][full] = append(t[k][full], w) }

// take removes and gives the watchers that an event is for.
func (t *watchTable) take(typ EventType, full string) (ws []watcher) {
	kinds := []watchKind{dataWatch, existWatch}
	switch typ {
	case NodeDeleted:
		kinds = append(kinds, childWatch)
	case NodeChildrenChanged:
		kinds = []watchKind{childWatch}
	}
	for _, k := range kinds {
		ws = append(ws, t[k][full]...)
		delete(t[k], full)
	}
	return ws
}

// takeAll empties the table.
func (t *watchTable) takeAll() (ws []watcher) {
	for k := range t {
		for _, path := range slices.Sorted(maps.Keys(t[k])) {
			ws = append(ws, t[k][path]...)
		}
		clear(t[k])
	}
	return ws
}

// setWatches lists all that is watched, in requests of about maxBytes each.
func (t *watchTable) setWatches(maxBytes int) (qs []zk.SetWatches) {
	var q zk.SetWatches
	lists := [watchKinds]*[]string{&q.Data, &q.Exist, &q.Child}
	bytes := 0
	for k := range t {
		for path := range t[k] {
			if bytes > maxBytes {
				qs, q, bytes = append(qs, q), zk.SetWatches{}, 0
			}
			*lists[k] = append(*lists[k], path)
			bytes += 4 + len(path)
		}
	}
	if bytes > 0 {
		qs = append(qs, q)
	}
	return qs
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
