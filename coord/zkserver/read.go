package zkserver

import (
	"strings"
	"sync"

	"platter/coord/tree"
	"platter/coord/zk"
)

// reader answers one request that changes nothing.
type reader struct {
	s    *Server
	c    *conn
	q    request
	head zk.ReplyHeader
	d    zk.Decoder
}

var idleReaders = sync.Pool{New: func() any { return new(reader) }}

// readers are by operation; each gives false when the request is malformed.
var readers = map[zk.Op]func(*reader) bool{
	zk.OpExists:               (*reader).exists,
	zk.OpGetData:              (*reader).getData,
	zk.OpGetChildren:          (*reader).getChildren,
	zk.OpGetChildren2:         (*reader).getChildren,
	zk.OpGetACL:               (*reader).getACL,
	zk.OpSync:                 (*reader).sync,
	zk.OpMultiRead:            (*reader).multiRead,
	zk.OpGetAllChildrenNumber: (*reader).allChildrenNumber,
	zk.OpGetEphemerals:        (*reader).ephemerals,
	zk.OpWhoAmI:               (*reader).whoAmI,
	zk.OpSetWatches:           (*reader).setWatches,
	zk.OpSetWatches2:          (*reader).setWatches,
	zk.OpAddWatch:             (*reader).addWatch,
	zk.OpCheckWatches:         (*reader).checkWatches,
	zk.OpRemoveWatches:        (*reader).removeWatches,
	zk.OpReconfig:             func(*reader) bool { return false }, // a whole one is a write
}

// read answers a request that changes nothing, or that cannot be done. The tree is locked, at least for
// reading, until the reply is in the output: an event of a watch that the request sets comes after.
func (s *Server) read(c *conn, q *request) {
	if q.Op == zk.OpPing { // in its turn, and always with this xid
		c.header(zk.XidPing, s.tree.Zxid(), zk.OK)
		return
	}
	answer, known := readers[q.Op]
	if !known {
		c.header(q.Xid, -1, zk.Unimplemented)
		c.finish()
		return
	}
	zxid := s.tree.Zxid()
	if !s.tree.HasSession(c.session.id) {
		c.header(q.Xid, zxid, zk.SessionExpired)
		return
	}
	r := idleReaders.Get().(*reader)
	*r = reader{s: s, c: c, q: *q, head: zk.ReplyHeader{Xid: q.Xid, Zxid: zxid}, d: zk.NewDecoder(q.body)}
	if !answer(r) {
		c.header(q.Xid, zxid, zk.Marshalling)
	}
	*r = reader{}
	idleReaders.Put(r)
}

// answer sends the record, unless code is an error; it gives true.
func (r *reader) answer(code zk.Code, record func([]byte) []byte) bool {
	r.head.Err = code
	r.c.reply(r.head, record)
	return true
}

// answerBytes is about how long the answer to a read will be. Those that cannot be told wait alone.
func (s *Server) answerBytes(q *request) int64 {
	switch q.Op {
	case zk.OpMultiRead, zk.OpGetEphemerals:
		return heldBytesMax
	case zk.OpGetData, zk.OpGetChildren, zk.OpGetChildren2:
		d := zk.NewDecoder(q.body)
		path := d.Path()
		s.mu.RLock()
		defer s.mu.RUnlock()
		if q.Op == zk.OpGetData {
			st, _ := s.tree.Exists(path)
			return int64(st.DataLength)
		}
		return s.tree.ChildrenBytes(path)
	}
	return 0
}

// count counts what was read of a node, if there is one: what clients ask for in vain names no namespace.
func (r *reader) count(code zk.Code, path string, bytes int) {
	if code == zk.OK {
		r.s.stats.namespaces.read(path, bytes)
	}
}

func nothing(b []byte) []byte { return b }

func (r *reader) pathWatch() (q zk.PathWatchRequest, ok bool) {
	q.Decode(&r.d)
	return q, r.d.Err() == nil
}

// exists sets its watch on a missing node too.
func (r *reader) exists() bool {
	q, ok := r.pathWatch()
	if !ok {
		return false
	}
	if strings.Contains(q.Path, "\x00") {
		return r.answer(zk.BadArguments, nothing)
	}
	st, code := r.s.tree.Exists(q.Path)
	r.count(code, q.Path, 0)
	r.answer(code, st.Append)
	if q.Watch {
		r.s.watch(r.c, tree.WatchData, tree.OneShot, q.Path)
	}
	return true
}

func (r *reader) getData() bool {
	q, ok := r.pathWatch()
	if !ok {
		return false
	}
	var a zk.GetDataResponse
	var code zk.Code
	a.Data, a.Stat, code = r.s.tree.Get(q.Path, r.q.who)
	if code == zk.OK && !r.c.reserve(int64(len(a.Data))) {
		return true
	}
	r.count(code, q.Path, len(a.Data))
	r.answer(code, a.Append)
	if q.Watch && code == zk.OK {
		r.s.watch(r.c, tree.WatchData, tree.OneShot, q.Path)
	}
	return true
}

func (r *reader) getChildren() bool {
	q, ok := r.pathWatch()
	if !ok {
		return false
	}
	names, st, code := r.s.tree.Children(q.Path, r.q.who)
	if code == zk.OK && !r.c.reserve(r.s.tree.ChildrenBytes(q.Path)) {
		return true
	}
	bytes := 0
	r.answer(code, func(b []byte) []byte {
		b = zk.AppendInt32(b, st.NumChildren)
		for name := range names {
			b = zk.AppendString(b, name)
			bytes += len(name)
		}
		if r.q.Op == zk.OpGetChildren2 {
			b = st.Append(b)
		}
		return b
	})
	r.count(code, q.Path, bytes)
	if q.Watch && code == zk.OK {
		r.s.watch(r.c, tree.WatchChild, tree.OneShot, q.Path)
	}
	return true
}

func (r *reader) getACL() bool {
	var q zk.GetACLRequest
	if q.Decode(&r.d); r.d.Err() != nil {
		return false
	}
	var a zk.GetACLResponse
	var code zk.Code
	a.ACL, a.Stat, code = r.s.tree.ACL(q.Path, r.q.who)
	return r.answer(code, a.Append)
}

// sync gives the path back as it came, null too.
func (r *reader) sync() bool {
	path := r.d.Buffer()
	if r.d.Err() != nil {
		return false
	}
	return r.answer(zk.OK, func(b []byte) []byte { return zk.AppendBuffer(b, path) })
}

// multiRead answers each read as if it stood alone. At an operation that is no read it ends, and what came
// before is sent with the error. Beyond what a connection's output may be it costs the connection: some bytes of
// request ask for a megabyte of data, as often as they fit into a frame.
func (r *reader) multiRead() bool {
	var q zk.MultiReadRequest
	if q.Decode(&r.d); r.d.Err() != nil {
		return false
	}
	if !r.c.reserve(r.multiBytes(q.Ops)) {
		return true
	}
	r.c.frame(func(b []byte) []byte {
		at := len(b)
		b = r.head.Append(b)
		for i := range q.Ops {
			o := &q.Ops[i]
			if o.Op != zk.OpGetData && o.Op != zk.OpGetChildren {
				failed := r.head
				failed.Err = zk.Marshalling
				failed.Append(b[:at])
				break
			}
			b = r.readOne(b, o)
		}
		return zk.AppendMultiEnd(b)
	})
	return true
}

// multiBytes is about how long the answer to several reads will be.
func (r *reader) multiBytes(ops []zk.MultiReadOp) (bytes int64) {
	for i := range ops {
		switch ops[i].Op {
		case zk.OpGetData:
			st, _ := r.s.tree.Exists(ops[i].Path)
			bytes += int64(st.DataLength)
		case zk.OpGetChildren:
			bytes += r.s.tree.ChildrenBytes(ops[i].Path)
		}
	}
	return bytes
}

// readOne adds one read's result. A wish for a watch is passed over, as in ZooKeeper.
func (r *reader) readOne(b []byte, o *zk.MultiReadOp) []byte {
	if o.Op == zk.OpGetData {
		var a zk.GetDataResponse
		var code zk.Code
		if a.Data, a.Stat, code = r.s.tree.Get(o.Path, r.q.who); code != zk.OK {
			return zk.AppendMultiError(b, code)
		}
		return a.Append(zk.MultiHeader{Op: o.Op}.Append(b))
	}
	names, st, code := r.s.tree.Children(o.Path, r.q.who)
	if code != zk.OK {
		return zk.AppendMultiError(b, code)
	}
	b = zk.AppendInt32(zk.MultiHeader{Op: o.Op}.Append(b), st.NumChildren)
	for name := range names {
		b = zk.AppendString(b, name)
	}
	return b
}

func (r *reader) allChildrenNumber() bool {
	path := r.d.Path()
	if r.d.Err() != nil {
		return false
	}
	n, code := r.s.tree.AllChildrenNumber(path, r.q.who)
	return r.answer(code, func(b []byte) []byte { return zk.AppendInt32(b, int32(n)) })
}

// ephemerals gives the session's own ephemeral nodes whose paths start with a prefix; blank or "/": all.
func (r *reader) ephemerals() bool {
	prefix := r.d.String()
	if r.d.Err() != nil {
		return false
	}
	all := strings.TrimSpace(prefix) == "" || strings.TrimSpace(prefix) == "/"
	var paths []string
	bytes := int64(0)
	for p := range r.s.tree.Ephemerals(r.c.session.id) {
		if all || strings.HasPrefix(p, prefix) {
			paths = append(paths, p)
			bytes += int64(4 + len(p))
		}
	}
	if !r.c.reserve(bytes) {
		return true
	}
	return r.answer(zk.OK, func(b []byte) []byte { return zk.AppendStrings(b, paths) })
}

// whoAmI gives a client's identities, digests without their hashes.
func (r *reader) whoAmI() bool {
	ids := make([]zk.ID, len(r.q.who))
	for i, id := range r.q.who {
		if id.Scheme == "digest" {
			id.ID, _, _ = strings.Cut(id.ID, ":")
		}
		ids[i] = id
	}
	return r.answer(zk.OK, func(b []byte) []byte { return zk.AppendIDs(b, ids) })
}
