package tree

import (
	"sync"

	"platter/coord/zk"
)

// WatchKind is which of two tables a watch stands in, as in ZooKeeper's DataTree: it decides what sets it off.
type WatchKind uint8

// Kinds.
const (
	WatchData  WatchKind = iota // set by getData and exists
	WatchChild                  // set by getChildren
	watchKinds
)

// WatchMode is how long a watch lasts and what it covers. A watcher has one mode for each kind and path: the
// last one that was set counts, as in ZooKeeper 3.8 (3.9 keeps them apart).
type WatchMode uint8

// Modes.
const (
	OneShot    WatchMode = 1 + iota // gone with its first event
	Persistent                      // stays
	Recursive                       // stays, and covers all nodes below
)

// Watches is who waits for what. W is a watcher, a connection. It is safe for concurrent use. It is no part of
// the replicated state: watches live and die with connections.
type Watches[W comparable] struct {
	mu        sync.Mutex
	who       func(W) []zk.ID
	tables    [watchKinds]map[string][]*watcher[W]
	of        map[W]*watcher[W]
	bytes     int
	counts    [watchKinds]int
	observers int     // watchers with a data watch
	recursive lengths // of the paths of recursive watches
	round     uint64  // of telling, so that one change tells a watcher once
}

// watcher is what one W waits for.
type watcher[W comparable] struct {
	w     W
	paths map[string]modes
	data  int // of its watches those of the data
	bytes int
	round uint64 // in which it was told last
}

// modes are those of both kinds, four bits each; 0: no watch.
type modes uint8

func (m modes) of(k WatchKind) WatchMode { return WatchMode(m >> (4 * k) & 0xf) }

func (m modes) with(k WatchKind, mode WatchMode) modes {
	return m&^(0xf<<(4*k)) | modes(mode)<<(4*k)
}

// watchBytes is about what a watch takes in memory.
func watchBytes(path string) int { return 150 + len(path) }

// NewWatches is an empty table. who tells a watcher's identities: what it may not read it is not told of
// (CVE-2024-23944).
func NewWatches[W comparable](who func(W) []zk.ID) *Watches[W] {
	t := &Watches[W]{who: who, of: map[W]*watcher[W]{}, recursive: lengths{}}
	for k := range t.tables {
		t.tables[k] = map[string][]*watcher[W]{}
	}
	return t
}

// Add sets a watch. It tells about how many bytes of memory the watcher's watches take now, and how many those
// of all.
func (t *Watches[W]) Add(kind WatchKind, mode WatchMode, path string, w W) (mine, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of[w]
	if x == nil {
		x = &watcher[W]{w: w, paths: map[string]modes{}}
		t.of[w] = x
	}
	had := x.paths[path]
	switch was := had.of(kind); {
	case was == mode:
		return x.bytes, t.bytes
	case was == 0:
		t.tables[kind][path] = append(t.tables[kind][path], x)
		t.count(kind, path, x, 1)
	case was == Recursive:
		t.recursive.remove(path)
	}
	if mode == Recursive {
		t.recursive.add(path)
	}
	x.paths[path] = had.with(kind, mode)
	return x.bytes, t.bytes
}

// count notes that there is one watch more, or with by -1 one less.
func (t *Watches[W]) count(k WatchKind, path string, x *watcher[W], by int) {
	x.bytes += by * watchBytes(path)
	t.bytes += by * watchBytes(path)
	t.counts[k] += by
	if k != WatchData {
		return
	}
	if x.data == 0 {
		t.observers++
	}
	if x.data += by; x.data == 0 {
		t.observers--
	}
}

// kindsOf are the tables that a client means.
func kindsOf(typ zk.WatcherType) []WatchKind {
	switch typ {
	case zk.WatcherChildren:
		return []WatchKind{WatchChild}
	case zk.WatcherData:
		return []WatchKind{WatchData}
	case zk.WatcherAny:
		return []WatchKind{WatchChild, WatchData}
	}
	return nil
}

// Has reports whether there is a watch of that type on path. Whose it is does not count: ZooKeeper 3.8 looks no
// closer (WatchManager.containsWatcher).
func (t *Watches[W]) Has(typ zk.WatcherType, path string, _ W) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range kindsOf(typ) {
		if len(t.tables[k][path]) > 0 {
			return true
		}
	}
	return false
}

// Drop removes w's watches of a type on path; false: there were none.
func (t *Watches[W]) Drop(typ zk.WatcherType, path string, w W) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x, dropped := t.of[w], false
	if x == nil {
		return false
	}
	for _, k := range kindsOf(typ) {
		if x.paths[path].of(k) != 0 {
			t.unlist(k, path, x)
			t.forget(k, path, x)
			dropped = true
		}
	}
	return dropped
}

// Remove forgets all of one watcher's, which must set no more. Others have their turn in between.
func (t *Watches[W]) Remove(w W) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of[w]
	if x == nil {
		return
	}
	looked := 0
	for path := range x.paths {
		for k := range watchKinds {
			if x.paths[path].of(k) != 0 {
				t.unlist(k, path, x)
				t.forget(k, path, x)
			}
		}
		t.pause(&looked)
	}
}

// pause lets others have the table, once in a while of a long walk over a map; what is set or goes meanwhile may be
// passed over or not.
func (t *Watches[W]) pause(looked *int) {
	if *looked++; *looked%lookedAtOnce == 0 {
		t.mu.Unlock()
		t.mu.Lock()
	}
}

// unlist takes x out of a path's list.
func (t *Watches[W]) unlist(k WatchKind, path string, x *watcher[W]) {
	list := t.tables[k][path]
	for i := range list {
		if list[i] == x {
			last := len(list) - 1
			list[i], list[last] = list[last], nil
			list = list[:last]
			break
		}
	}
	t.store(k, path, list)
}

func (t *Watches[W]) store(k WatchKind, path string, list []*watcher[W]) {
	if len(list) == 0 {
		delete(t.tables[k], path)
		return
	}
	t.tables[k][path] = list
}

// forget takes a watch that is in no list any more out of what x waits for.
func (t *Watches[W]) forget(k WatchKind, path string, x *watcher[W]) {
	m := x.paths[path]
	if m.of(k) == Recursive {
		t.recursive.remove(path)
	}
	t.count(k, path, x, -1)
	if m = m.with(k, 0); m != 0 {
		x.paths[path] = m
		return
	}
	if delete(x.paths, path); len(x.paths) == 0 {
		delete(t.of, x.w)
	}
}

// Fire calls tell for each watch that c sets off, in ZooKeeper's order: those on the node first (a deletion tells a
// watcher once, whatever it waited for), then those on the parent's children. One-shot watches go, also of
// those who may not be told.
func (t *Watches[W]) Fire(c Change, tell func(w W, typ zk.EventType, path string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.round++
	t.trigger(WatchData, c.Type, c.Path, c.acl, tell)
	if c.Type == zk.EventDataChanged {
		return
	}
	if c.Type == zk.EventDeleted {
		t.trigger(WatchChild, c.Type, c.Path, c.acl, tell)
	}
	t.round++
	t.trigger(WatchChild, zk.EventChildrenChanged, parentOf(c.Path), c.parent, tell)
}

func parentOf(path string) string {
	parent, _ := split(path)
	if parent == "" {
		return "/"
	}
	return parent
}

// trigger tells the watches of one kind (WatchManager.triggerWatch).
func (t *Watches[W]) trigger(k WatchKind, typ zk.EventType, path string, a *acl, tell func(W, zk.EventType, string)) {
	once := func(x *watcher[W]) {
		if x.round == t.round {
			return
		}
		x.round = t.round
		if a.allows(zk.PermRead, nil) || a.allows(zk.PermRead, t.who(x.w)) {
			tell(x.w, typ, path)
		}
	}
	if list := t.tables[k][path]; len(list) > 0 {
		stay := list[:0]
		for _, x := range list {
			mode := x.paths[path].of(k)
			if mode != Recursive || typ != zk.EventChildrenChanged {
				once(x)
			}
			if mode == OneShot {
				t.forget(k, path, x)
			} else {
				stay = append(stay, x)
			}
		}
		clear(list[len(stay):])
		t.store(k, path, stay)
	}
	if len(t.recursive) == 0 || typ == zk.EventChildrenChanged {
		return
	}
	for at := path; at != "/"; {
		if at = parentOf(at); !t.recursive.has(at) {
			continue
		}
		for _, x := range t.tables[k][at] {
			if x.paths[at].of(k) == Recursive {
				once(x)
			}
		}
	}
}

// WatchCounts are those of the data watches, which ZooKeeper's four-letter words tell of, and of
// all, with about the memory that these take.
type WatchCounts struct{ Watchers, Paths, Data, All, Bytes int }

// Counts tells how many there are.
func (t *Watches[W]) Counts() WatchCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return WatchCounts{
		Watchers: t.observers, Paths: len(t.tables[WatchData]), Data: t.counts[WatchData],
		All: t.counts[WatchData] + t.counts[WatchChild], Bytes: t.bytes,
	}
}

// Each calls f for every data watch, with the table locked, but not for long at a time.
func (t *Watches[W]) Each(f func(w W, path string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	looked := 0
	for _, x := range t.of {
		for path, m := range x.paths {
			if m.of(WatchData) != 0 {
				f(x.w, path)
			}
			t.pause(&looked)
		}
	}
}
