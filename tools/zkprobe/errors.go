package main

import (
	"strings"
	"time"

	"platter/tools/zkwire"
)

// limit is how long an answer may take, silence how long a request that a real server leaves unanswered is given.
const (
	limit   = 60 * time.Second
	silence = 2 * time.Second
)

func join(v []string) string { return strings.Join(v, " ") }

// alone sends one request on a session of its own.
func (p *probe) alone(name string, op int32, body zkwire.Body) {
	x := p.open()
	defer x.NC.Close()
	wait := limit
	if op == zkwire.OpCheck {
		wait = silence
	}
	r, told := x.callXid(wait, x.NextXid(), op, body)
	then := []string{}
	if wait == limit {
		then = x.told()
	}
	p.out(name, "err %d body %d %v then %v", r.Err, len(r.Body), told, then)
}

func (p *probe) createErrors() {
	root := p.root
	create := func(name, path string, flags int32) {
		p.alone(name, zkwire.OpCreate, zkwire.Create(path, nil, flags))
	}
	create("create.exists", root, 0)
	create("create.noparent", root+"/x/y", 0)
	create("create.relative", "x", 0)
	create("create.trailing-slash", root+"/t/", 0)
	create("create.dots", root+"/..", 0)
	create("create.root", "/", 0)
	create("create.badflags", root+"/bf", 99)
	p.alone("create.no-acl", zkwire.OpCreate, zkwire.CreateACL(root+"/na", nil, nil, 0))
	p.alone("create.null-acl", zkwire.OpCreate, func(e *zkwire.Enc) {
		e.Str(root + "/na")
		e.Buf(nil)
		e.I32(-1)
		e.I32(0)
	})
	p.alone("create.auth-acl-unauthenticated", zkwire.OpCreate,
		zkwire.CreateACL(root+"/na", nil, []zkwire.ACL{{Perms: 31, Scheme: "auth"}}, 0))
	p.alone("createTTL.5s", zkwire.OpCreateTTL, func(e *zkwire.Enc) {
		zkwire.Create(root+"/ttl", nil, 5)(e)
		e.I64(5000)
	})
	p.alone("createContainer", zkwire.OpCreateContainer, zkwire.Create(root+"/cont", nil, 4))
	p.alone("create2", zkwire.OpCreate2, zkwire.Create(root+"/c2", nil, 0))
}

func (p *probe) otherErrors() {
	root := p.root
	p.alone("delete.root", zkwire.OpDelete, zkwire.PathInt("/", -1))
	p.alone("delete.notempty", zkwire.OpDelete, zkwire.PathInt(root, -1))
	p.alone("delete.zookeeper", zkwire.OpDelete, zkwire.PathInt("/zookeeper", -1))
	p.alone("set.badversion", zkwire.OpSetData, zkwire.Set(root, nil, 77))
	p.alone("get.badpath", zkwire.OpGetData, zkwire.PathWatch("nope", false))
	p.alone("exists.badpath", zkwire.OpExists, zkwire.PathWatch("nope", false))
	p.alone("exists.emptypath", zkwire.OpExists, zkwire.PathWatch("", false))
	p.alone("check(13) alone", zkwire.OpCheck, zkwire.PathInt(root, -1))
	p.alone("unknown-op 77", 77, nil)
	p.alone("reconfig standalone", zkwire.OpReconfig, func(e *zkwire.Enc) {
		for range 3 {
			e.Str("")
		}
		e.I64(-1)
	})
	p.alone("sync", zkwire.OpSync, zkwire.Path("/nonexistent"))
	p.alone("getEphemerals", zkwire.OpGetEphemerals, zkwire.Path("/"))
	p.alone("getAllChildrenNumber", zkwire.OpGetAllChildrenNumber, zkwire.Path(root))
	p.alone("whoAmI", zkwire.OpWhoAmI, nil)
	p.alone("addWatch persistent missing node", zkwire.OpAddWatch, zkwire.PathInt(root+"/nonode", 0))
	p.alone("addWatch badmode", zkwire.OpAddWatch, zkwire.PathInt(root, 9))
	p.alone("removeWatches none", zkwire.OpRemoveWatches, zkwire.PathInt(root, 3))
	p.alone("checkWatches none", zkwire.OpCheckWatches, zkwire.PathInt(root, 3))
	p.alone("truncated body", zkwire.OpGetData, func(e *zkwire.Enc) { e.I32(50) })
	p.alone("closeSession", zkwire.OpClose, nil)
}

func (p *probe) oddities() {
	x := p.open()
	x.NC.Write([]byte{0x7f, 0, 0, 0})
	p.out("frame.too-big", "%v", x.ended())
	x = p.open()
	r, told := x.callXid(limit, zkwire.XidAuth, zkwire.OpAuth, zkwire.Auth("nosuch", []byte("a:b")))
	if told == "" {
		p.out("auth.unknown-scheme", "xid %d err %d then %v", r.Xid, r.Err, x.ended())
	} else {
		p.out("auth.unknown-scheme", "%s", told)
	}
	x = p.open()
	r, _ = x.callXid(limit, zkwire.XidAuth, zkwire.OpAuth, zkwire.Auth("digest", []byte("u:p")))
	p.out("auth.digest", "xid %d err %d zxid %d", r.Xid, r.Err, r.Zxid)
}
