package zkserver

import (
	"platter/coord/tree"
	"platter/coord/zk"
)

// answerWrite adds the reply to p, which has been applied (or refused) with result r.
func (c *conn) answerWrite(p *proposal, r tree.Result) {
	head := zk.ReplyHeader{Xid: p.xid, Zxid: p.entry.Zxid, Err: r.Err}
	op := p.entry.Op
	c.frame(func(b []byte) []byte {
		b = head.Append(b)
		if r.Err != zk.OK {
			return b
		}
		switch op {
		case zk.OpCreate, zk.OpCreate2:
			cr := zk.CreateResponse{Path: r.Path, Stat: r.Stat}
			b = cr.Append(b, op)
		case zk.OpSetData, zk.OpSetACL:
			b = r.Stat.Append(b)
		case zk.OpMulti:
			b = r.Multi.Append(b)
		}
		return b
	})
	if op == zk.OpCloseSession {
		c.finish()
	}
}

// read answers a request that changes nothing, or that cannot be done. The tree is locked, at least
// for reading, until the reply is in the output: an event of a watch that the request sets comes after.
func (s *Server) read(c *conn, q *request) {
	zxid := s.tree.Zxid()
	d := zk.NewDecoder(q.body)
	switch q.Op {
	case zk.OpExists, zk.OpGetData, zk.OpGetChildren, zk.OpGetChildren2:
		var r zk.PathWatchRequest
		if r.Decode(&d); d.Err() == nil {
			s.readNode(c, q, zxid, r)
			return
		}
	case zk.OpGetACL:
		var r zk.GetACLRequest
		if r.Decode(&d); d.Err() == nil {
			s.readACL(c, q, zxid, r.Path)
			return
		}
	case zk.OpSync:
		var r zk.PathRecord
		if r.Decode(&d); d.Err() == nil {
			c.frame(func(b []byte) []byte {
				return r.Append(zk.ReplyHeader{Xid: q.Xid, Zxid: zxid}.Append(b))
			})
			return
		}
	case zk.OpSetWatches:
		var r zk.SetWatches
		if r.Decode(&d, q.Op); d.Err() == nil {
			s.setWatches(c, &r)
			c.header(q.Xid, zxid, zk.OK)
			return
		}
	case zk.OpAuth:
		c.header(q.Xid, 0, zk.AuthFailed)
		c.finish()
		return
	default:
		if !isWrite(q.Op) {
			c.header(q.Xid, zxid, zk.Unimplemented)
			if !known(q.Op) {
				c.finish()
			}
			return
		}
	}
	c.header(q.Xid, zxid, zk.Marshalling)
}

// known reports whether ZooKeeper has such an operation, though it is not done here.
func known(op zk.Op) bool {
	switch op {
	case zk.OpCheck, zk.OpReconfig, zk.OpCheckWatches, zk.OpRemoveWatches, zk.OpCreateContainer,
		zk.OpDeleteContainer, zk.OpCreateTTL, zk.OpMultiRead, zk.OpSASL, zk.OpGetEphemerals,
		zk.OpGetAllChildrenNumber, zk.OpSetWatches2, zk.OpAddWatch, zk.OpWhoAmI:
		return true
	}
	return false
}

// readNode answers exists, getData and getChildren, and sets the watch. A missing node leaves a watch
// only for exists.
func (s *Server) readNode(c *conn, q *request, zxid int64, r zk.PathWatchRequest) {
	head := zk.ReplyHeader{Xid: q.Xid, Zxid: zxid}
	kind := tree.WatchData
	switch q.Op {
	case zk.OpExists:
		var st zk.Stat
		st, head.Err = s.tree.Exists(r.Path)
		c.reply(head, st.Append)
		if head.Err == zk.NoNode && r.Watch {
			s.watch(c, kind, r.Path)
		}
	case zk.OpGetData:
		var a zk.GetDataResponse
		a.Data, a.Stat, head.Err = s.tree.Get(r.Path)
		c.reply(head, a.Append)
	default:
		kind = tree.WatchChild
		names, st, code := s.tree.Children(r.Path)
		head.Err = code
		c.reply(head, func(b []byte) []byte {
			b = zk.AppendInt32(b, st.NumChildren)
			for name := range names {
				b = zk.AppendString(b, name)
			}
			if q.Op == zk.OpGetChildren2 {
				b = st.Append(b)
			}
			return b
		})
	}
	if head.Err == zk.OK && r.Watch {
		s.watch(c, kind, r.Path)
	}
}

func (s *Server) readACL(c *conn, q *request, zxid int64, path string) {
	head := zk.ReplyHeader{Xid: q.Xid, Zxid: zxid}
	var a zk.GetACLResponse
	a.ACL, a.Stat, head.Err = s.tree.ACL(path)
	c.reply(head, a.Append)
}

// reply adds a header and, if its Err is OK, the record.
func (c *conn) reply(head zk.ReplyHeader, record func([]byte) []byte) {
	c.frame(func(b []byte) []byte {
		if b = head.Append(b); head.Err == zk.OK {
			b = record(b)
		}
		return b
	})
}

const (
	// watchBytesMax bounds the memory of a connection's watches (some 250,000), watchBytesAllMax that of
	// all.
	watchBytesMax    = 64 << 20
	watchBytesAllMax = 512 << 20
)

// watch sets a watch, or ends a connection that has too many.
func (s *Server) watch(c *conn, kind tree.WatchKind, path string) {
	mine, all := s.watches.Add(kind, path, c)
	if mine > watchBytesMax || all > watchBytesAllMax {
		s.log.Warn("coordinator: connection closed: too many watches", "peer", c.nc.RemoteAddr(),
			"bytes", mine, "most", watchBytesMax, "bytesOfAll", all, "mostOfAll", watchBytesAllMax)
		c.close()
	}
}

// setWatches re-arms a reconnected client's watches, or tells at once what it missed since
// RelativeZxid (DataTree.setWatches).
func (s *Server) setWatches(c *conn, r *zk.SetWatches) {
	for _, p := range r.Data {
		st, code := s.tree.Exists(p)
		switch {
		case code != zk.OK:
			c.event(zk.EventDeleted, p)
		case st.Mzxid > r.RelativeZxid:
			c.event(zk.EventDataChanged, p)
		default:
			s.watch(c, tree.WatchData, p)
		}
	}
	for _, p := range r.Exist {
		if _, code := s.tree.Exists(p); code == zk.OK {
			c.event(zk.EventCreated, p)
		} else {
			s.watch(c, tree.WatchData, p)
		}
	}
	for _, p := range r.Child {
		st, code := s.tree.Exists(p)
		switch {
		case code != zk.OK:
			c.event(zk.EventDeleted, p)
		case st.Pzxid > r.RelativeZxid:
			c.event(zk.EventChildrenChanged, p)
		default:
			s.watch(c, tree.WatchChild, p)
		}
	}
}
