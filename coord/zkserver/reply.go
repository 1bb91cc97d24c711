package zkserver

import (
	"platter/coord/tree"
	"platter/coord/zk"
)

// answerWrite adds the reply to p, which has been applied (or refused) with result r.
func (s *Server) answerWrite(c *conn, p *proposal, r tree.Result) {
	head := zk.ReplyHeader{Xid: p.xid, Zxid: p.entry.Zxid, Err: r.Err}
	op := p.entry.Op
	if op == zk.OpCheck && r.Err == zk.OK {
		return // nor does the real server answer: outside a multi it cannot
	}
	if r.OverQuota != "" {
		s.overQuota(r.OverQuota)
	}
	c.frame(func(b []byte) []byte {
		b = head.Append(b)
		if r.Err != zk.OK {
			return b
		}
		switch op {
		case zk.OpCreate, zk.OpCreate2, zk.OpCreateContainer, zk.OpCreateTTL:
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

// overQuota warns of a limit that was exceeded, but not more often than somebody could read.
func (s *Server) overQuota(what string) {
	const everyMs = 1000
	now := s.sessions.nowMs()
	if last := s.quotaWarnedMs.Load(); last == 0 || now-last >= everyMs {
		s.quotaWarnedMs.Store(max(now, 1))
		s.log.Warn("coordinator: quota exceeded", "quota", what)
	}
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
