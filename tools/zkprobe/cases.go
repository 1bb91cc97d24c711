package main

import (
	"encoding/hex"
	"fmt"

	"platter/tools/zkwire"
)

func (p *probe) handshakes() {
	p.a = p.open()
	p.out("connect.response.len.with-ro", "%d passwd %d bytes", p.a.HelloLen, len(p.a.Password))
	b := p.connect(zkwire.Hello{RO: -1, TimeoutMs: 10_000, Password: noPassword})
	p.out("connect.response.len.without-ro", "%d", b.HelloLen)
	b = p.connect(zkwire.Hello{TimeoutMs: 1})
	p.out("connect.timeout-1ms.nullpw", "negotiated %d", b.TimeoutMs)
	b = p.connect(zkwire.Hello{TimeoutMs: 1 << 30, Password: noPassword})
	p.out("connect.timeout-huge", "negotiated %d", b.TimeoutMs)
	b = p.connect(zkwire.Hello{LastZxid: 1 << 60, TimeoutMs: 10_000, Password: noPassword})
	p.out("connect.lastZxid-ahead", "len %d (-1: closed without a reply)", b.HelloLen)
	b = p.connect(zkwire.Hello{TimeoutMs: 10_000, SessionID: p.a.SessionID, Password: noPassword})
	p.out("reattach.wrong-password", "timeout %d sid %d then %v", b.TimeoutMs, b.SessionID, b.ended())
	b = p.connect(zkwire.Hello{TimeoutMs: 10_000, SessionID: 0x1234567, Password: noPassword})
	p.out("reattach.unknown-session", "timeout %d sid %d then %v", b.TimeoutMs, b.SessionID, b.ended())
	old := p.a
	p.a = p.connect(zkwire.Hello{TimeoutMs: 9000, SessionID: old.SessionID, Password: old.Password})
	p.out("reattach.ok", "same sid %v same pw %v timeout %d; old conn: %v", p.a.SessionID == old.SessionID,
		string(p.a.Password) == string(old.Password), p.a.TimeoutMs, old.ended())
}

func (p *probe) firstWatches() {
	a, root := p.a, p.root
	a.create(root, 0)
	r, _ := a.callXid(limit, zkwire.XidPing, zkwire.OpPing, nil)
	p.out("ping", "xid %d err %d body %d", r.Xid, r.Err, len(r.Body))
	r, _ = a.call(zkwire.OpGetData, zkwire.PathWatch(root+"/none", true))
	p.out("get.missing", "err %d body %d", r.Err, len(r.Body))
	a.create(root+"/none", 0)
	p.out("get.missing.leaves-watch", "%v", a.told())
	a.call(zkwire.OpExists, zkwire.PathWatch(root+"/ex", true))
	a.create(root+"/q", 0)
	_, told := a.call(zkwire.OpCreate, zkwire.Create(root+"/ex", nil, 0))
	p.out("exists.missing.watch+own-create", "before reply: %v", told)
	r, _ = a.call(zkwire.OpGetData, zkwire.PathWatch(root+"/ex", true))
	d := zkwire.Dec{B: r.Body}
	p.out("null-data.readback", "len %d", d.I32())
	_, told = a.call(zkwire.OpSetData, zkwire.Set(root+"/ex", []byte{}, -1))
	p.out("event-before-reply.own-set", "%v", told)
	r, _ = a.call(zkwire.OpGetData, zkwire.PathWatch(root+"/ex", false))
	d = zkwire.Dec{B: r.Body}
	p.out("empty-data.readback", "len %d", d.I32())
	// Data and child watches on one node, then its deletion: how many events, and in which order with the parent's.
	a.call(zkwire.OpGetData, zkwire.PathWatch(root+"/ex", true))
	a.call(zkwire.OpGetChildren2, zkwire.PathWatch(root+"/ex", true))
	a.call(zkwire.OpExists, zkwire.PathWatch(root+"/ex", true))
	a.call(zkwire.OpGetChildren2, zkwire.PathWatch(root, true))
	_, told = a.call(zkwire.OpDelete, zkwire.PathInt(root+"/ex", -1))
	p.out("delete.data+exists+child+parent", "%v", told)
}

// counters: cversion, pzxid and sequence numbers.
func (p *probe) counters() {
	a, node := p.a, p.root+"/p"
	a.create(node, 0)
	s0 := a.stat(node)
	a.create(node+"/a", 0)
	z1 := a.zxid
	s1 := a.stat(node)
	a.call(zkwire.OpSetData, zkwire.Set(node+"/a", []byte("z"), -1))
	s2 := a.stat(node)
	a.del(node + "/a")
	z3 := a.zxid
	s3 := a.stat(node)
	q1, _ := a.create(node+"/s-", 2)
	q2, _ := a.create(node+"/", 2)
	p.out("cversion.create,set,delete", "%d %d %d %d; pzxid follows create %v delete %v set-of-child %v",
		s0.Cversion, s1.Cversion, s2.Cversion, s3.Cversion, s1.Pzxid == z1, s3.Pzxid == z3, s2.Pzxid != s1.Pzxid)
	p.out("new node pzxid==czxid==mzxid", "%v", s0.Pzxid == s0.Czxid && s0.Mzxid == s0.Czxid)
	p.out("sequence.after 1 create+1 delete", "%s %s", q1, q2)
	const digits = 10
	suffix := func(path string) string { return path[max(0, len(path)-digits):] }
	a.create(node+"/s-"+suffix(q1), 0) // fails: it is there
	q3, _ := a.create(node+"/s-", 2)
	p.out("failed-create.bumps-seq", "%v", suffix(q3))
}

func (p *probe) multis() {
	a, root := p.a, p.root
	r, _ := a.call(zkwire.OpMulti, func(e *zkwire.Enc) {
		e.MultiHeader(zkwire.OpCreate, false)
		zkwire.Create(root+"/m", nil, 0)(e)
		e.MultiHeader(zkwire.OpCheck, false)
		zkwire.PathInt(root, 77)(e)
		e.MultiHeader(zkwire.OpDelete, false)
		zkwire.PathInt(root+"/m", -1)(e)
		e.MultiHeader(-1, true)
	})
	p.out("multi.fail", "hdr err %d body %s", r.Err, hex.EncodeToString(r.Body))
	p.out("multi.fail.rolled-back", "%v", a.stat(root+"/m").Version == -999)
	a.call(zkwire.OpGetChildren2, zkwire.PathWatch(root, true))
	r, told := a.call(zkwire.OpMulti, func(e *zkwire.Enc) {
		e.MultiHeader(zkwire.OpCreate, false)
		zkwire.Create(root+"/m", nil, 1)(e)
		e.MultiHeader(zkwire.OpSetData, false)
		zkwire.Set(root+"/m", []byte("d"), 0)(e)
		e.MultiHeader(zkwire.OpCheck, false)
		zkwire.PathInt(root+"/m", 1)(e)
		e.MultiHeader(-1, true)
	})
	m := a.stat(root + "/m")
	p.out("multi.ephemeral-create+set", "err %d version %d owner==sid %v czxid==mzxid==reply %v events %v", r.Err, m.Version,
		m.Owner == a.SessionID, m.Czxid == m.Mzxid && m.Czxid == r.Zxid, told)
	r, _ = a.call(zkwire.OpMulti, func(e *zkwire.Enc) { e.MultiHeader(-1, true) })
	p.out("multi.empty", "err %d body %s", r.Err, hex.EncodeToString(r.Body))
	r, _ = a.call(zkwire.OpMultiRead, func(e *zkwire.Enc) {
		e.MultiHeader(zkwire.OpGetData, false)
		zkwire.PathWatch(root+"/none", false)(e)
		e.MultiHeader(zkwire.OpGetChildren, false)
		zkwire.PathWatch(root+"/absent", false)(e)
		e.MultiHeader(-1, true)
	})
	p.out("multiRead get+missing children", "err %d body %d tail %s", r.Err, len(r.Body), hex.EncodeToString(r.Body[max(0, len(r.Body)-22):]))
	_, code := a.create(root+"/m/kid", 0)
	p.out("child-of-ephemeral", "err %d", code)
}

func (p *probe) persistentWatches() {
	a, root := p.a, p.root
	recursive, persistent := p.open(), p.open()
	recursive.call(zkwire.OpAddWatch, zkwire.PathInt(root, 1))
	persistent.call(zkwire.OpAddWatch, zkwire.PathInt(root, 0))
	a.create(root+"/pr", 0)
	a.create(root+"/pr/k", 0)
	a.call(zkwire.OpSetData, zkwire.Set(root+"/pr/k", nil, -1))
	a.del(root + "/pr/k")
	a.del(root + "/pr")
	a.call(zkwire.OpSetData, zkwire.Set(root, nil, -1))
	p.out("persistent-recursive on R", "%v", join(recursive.told()))
	p.out("persistent on R", "%v", join(persistent.told()))
	a.call(zkwire.OpGetData, zkwire.PathWatch(root, true))
	a.call(zkwire.OpSetACL, func(e *zkwire.Enc) {
		e.Str(root)
		e.ACLs(zkwire.World)
		e.I32(-1)
	})
	p.out("setACL", "aversion %d events %v", a.stat(root).Aversion, a.told())
}

// setWatches with an old zxid: what has changed since is told before the reply.
func (p *probe) setWatches() {
	v, root := p.open(), p.root
	v.create(root+"/sw", 0)
	seen := v.zxid
	v.call(zkwire.OpSetData, zkwire.Set(root+"/sw", []byte("1"), -1))
	r, told := v.callXid(limit, zkwire.XidSetWatches, zkwire.OpSetWatches, func(e *zkwire.Enc) {
		e.I64(seen)
		e.Strs([]string{root + "/sw", root + "/gone"})
		e.Strs([]string{root + "/sw", root + "/later"})
		e.Strs([]string{root})
	})
	p.out("setWatches", "xid %d err %d before reply: %v after: %v", r.Xid, r.Err, told, join(v.told()))
	ro := p.connect(zkwire.Hello{RO: 1, TimeoutMs: 10_000, Password: noPassword})
	ro.NC.Close()
	p.out("connect.readonly-client", "len %d timeout %d", ro.HelloLen, ro.TimeoutMs)
}

// endings: a closed session's ephemeral nodes, and requests that do not wait for one another.
func (p *probe) endings() {
	root := p.root
	c1, c2 := p.open(), p.open()
	c1.create(root+"/eph", 1)
	c2.call(zkwire.OpExists, zkwire.PathWatch(root+"/eph", true))
	c1.call(zkwire.OpClose, nil)
	p.out("close.ephemeral gone", "%v", join(c2.told()))
	f := p.open()
	const pairs, first = 200, 1000
	for i := range int32(pairs) {
		f.NC.Write(zkwire.Request(first+2*i, zkwire.OpSetData, zkwire.Set(root, fmt.Append(nil, i), -1)))
		f.NC.Write(zkwire.Request(first+1+2*i, zkwire.OpGetData, zkwire.PathWatch(root, false)))
	}
	bad, why := 0, ""
	for i := range 2 * pairs {
		r, err := f.Recv(limit)
		if err != nil {
			why = err.Error()
			break
		}
		d := zkwire.Dec{B: r.Body}
		if int(r.Xid) != first+i || i%2 == 1 && string(d.Buf()) != fmt.Sprint(i/2) {
			bad++
		}
	}
	p.out("pipelined set,get x200", "out of order or stale: %d %s", bad, why)
}
