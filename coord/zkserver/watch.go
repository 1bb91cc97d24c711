package zkserver

import (
	"platter/coord/tree"
	"platter/coord/zk"
)

const (
	// watchBytesMax bounds the memory of a connection's watches (some 1.5 million), watchBytesAllMax that of
	// all.
	watchBytesMax    = 256 << 20
	watchBytesAllMax = 512 << 20
)

// watch sets a watch, or ends a connection that has too many.
func (s *Server) watch(c *conn, kind tree.WatchKind, mode tree.WatchMode, path string) {
	mine, all := s.watches.Add(kind, mode, path, c)
	if mine > watchBytesMax || all > watchBytesAllMax {
		s.log.Warn("coordinator: connection closed: too many watches", "peer", c.peer,
			"bytes", mine, "most", watchBytesMax, "bytesOfAll", all, "mostOfAll", watchBytesAllMax)
		c.close()
	}
}

// watchBoth sets what addWatch sets.
func (s *Server) watchBoth(c *conn, mode tree.WatchMode, path string) {
	s.watch(c, tree.WatchData, mode, path)
	s.watch(c, tree.WatchChild, mode, path)
}

func (r *reader) addWatch() bool {
	var q zk.AddWatchRequest
	if q.Decode(&r.d); r.d.Err() != nil {
		return false
	}
	modes := map[zk.WatchMode]tree.WatchMode{
		zk.WatchPersistent: tree.Persistent, zk.WatchPersistentRecursive: tree.Recursive,
	}
	mode, ok := modes[q.Mode]
	if !ok {
		return false
	}
	r.answer(zk.OK, func(b []byte) []byte { return zk.AppendInt32(b, int32(zk.OK)) })
	r.s.watchBoth(r.c, mode, q.Path)
	return true
}

func (r *reader) checkWatches() bool  { return r.forWatches(r.s.watches.Has) }
func (r *reader) removeWatches() bool { return r.forWatches(r.s.watches.Drop) }

func (r *reader) forWatches(do func(zk.WatcherType, string, *conn) bool) bool {
	var q zk.WatchesRequest
	if q.Decode(&r.d); r.d.Err() != nil || q.Type < zk.WatcherChildren || q.Type > zk.WatcherAny {
		return false
	}
	if r.q.Op == zk.OpCheckWatches && q.Path != "" && q.Path[0] != '/' {
		return false // the real server looks for its parents, and finds that it has none
	}
	code := zk.NoWatcher
	if do(q.Type, q.Path, r.c) {
		code = zk.OK
	}
	return r.answer(code, nothing)
}

// setWatches re-arms a reconnected client's watches, or tells at once what it missed since RelativeZxid
// (DataTree.setWatches). As there, persistent watches are armed without a look at what was missed, and nobody asks
// whether the client may read the nodes.
func (r *reader) setWatches() bool {
	var q zk.SetWatches
	if q.Decode(&r.d, r.q.Op); r.d.Err() != nil {
		return false
	}
	null := q.Data == nil || q.Exist == nil || q.Child == nil
	if null || r.q.Op == zk.OpSetWatches2 && (q.Persistent == nil || q.PersistentRecursive == nil) {
		return false // a list that is null is none; the real server falls over it
	}
	t := r.s.tree
	for _, p := range q.Data {
		st, code := t.Exists(p)
		switch {
		case code != zk.OK:
			r.c.event(zk.EventDeleted, p)
		case st.Mzxid > q.RelativeZxid:
			r.c.event(zk.EventDataChanged, p)
		default:
			r.s.watch(r.c, tree.WatchData, tree.OneShot, p)
		}
	}
	for _, p := range q.Exist {
		if _, code := t.Exists(p); code == zk.OK {
			r.c.event(zk.EventCreated, p)
		} else {
			r.s.watch(r.c, tree.WatchData, tree.OneShot, p)
		}
	}
	for _, p := range q.Child {
		st, code := t.Exists(p)
		switch {
		case code != zk.OK:
			r.c.event(zk.EventDeleted, p)
		case st.Pzxid > q.RelativeZxid:
			r.c.event(zk.EventChildrenChanged, p)
		default:
			r.s.watch(r.c, tree.WatchChild, tree.OneShot, p)
		}
	}
	for _, p := range q.Persistent {
		r.s.watchBoth(r.c, tree.Persistent, p)
	}
	for _, p := range q.PersistentRecursive {
		r.s.watchBoth(r.c, tree.Recursive, p)
	}
	return r.answer(zk.OK, nothing)
}
