package zkserver

import "platter/coord/zk"

// talk is what cons tells of a connection: its last request, and how long requests took.
type talk struct {
	sent                      int64
	op                        zk.Op
	xid                       int64
	zxid                      int64
	answeredMs                int64 // tracker time
	lastMs, minMs, maxMs, sum int64
	count                     int64
}

// note keeps what is told of the last request. Xids with a meaning of their own are no news.
func (c *conn) note(op zk.Op, xid int32, zxid, nowMs, arrivedMs int64) {
	c.omu.Lock()
	defer c.omu.Unlock()
	t := &c.talk
	t.op, t.zxid, t.answeredMs = op, zxid, nowMs
	if xid >= 0 {
		t.xid = int64(xid)
	}
	ms := max(nowMs-arrivedMs, 0)
	if t.count == 0 || ms < t.minMs {
		t.minMs = ms
	}
	t.lastMs, t.maxMs, t.sum = ms, max(t.maxMs, ms), t.sum+ms
	t.count++
}

// forgetTalk is crst.
func (c *conn) forgetTalk() {
	c.omu.Lock()
	defer c.omu.Unlock()
	c.received.Store(0)
	c.talk = talk{op: c.talk.op, xid: c.talk.xid, zxid: c.talk.zxid}
}

// connReport is a connection at one time.
type connReport struct {
	peer                   string
	reading                bool // requests are taken: not too many wait
	queued, received, sent int64
	session                int64 // 0: none yet
	sinceMs, timeoutMs     int64
	talk                   talk
}

func (c *conn) report() connReport {
	c.qmu.Lock()
	queued := len(c.queue)
	reading := queued < c.outstandingMax()
	c.qmu.Unlock()
	c.omu.Lock()
	defer c.omu.Unlock()
	r := connReport{
		peer: c.peer.String(), reading: reading, queued: int64(queued), received: c.received.Load(),
		sent: c.talk.sent, sinceMs: c.sinceMs, talk: c.talk,
	}
	if x := c.attached.Load(); x != nil {
		r.session, r.timeoutMs = x.id, int64(x.timeoutMs.Load())
	}
	return r
}

func (t talk) meanMs() int64 {
	if t.count == 0 {
		return 0
	}
	return t.sum / t.count
}

// opNames are those that cons gives (FinalRequestProcessor).
var opNames = map[zk.Op]string{
	zk.OpPing: "PING", zk.OpCreateSession: "SESS", zk.OpMulti: "MULT", zk.OpMultiRead: "MLTR", zk.OpCreate: "CREA",
	zk.OpCreate2: "CREA", zk.OpCreateTTL: "CREA", zk.OpCreateContainer: "CREA", zk.OpDelete: "DELE",
	zk.OpSetData: "SETD", zk.OpSetACL: "SETA", zk.OpCloseSession: "CLOS", zk.OpSync: "SYNC", zk.OpCheck: "CHEC",
	zk.OpExists: "EXIS", zk.OpGetData: "GETD", zk.OpSetWatches: "SETW", zk.OpSetWatches2: "STW2",
	zk.OpAddWatch: "ADDW", zk.OpGetACL: "GETA", zk.OpGetChildren: "GETC", zk.OpGetChildren2: "GETC",
	zk.OpGetAllChildrenNumber: "GETACN", zk.OpCheckWatches: "CHKW", zk.OpRemoveWatches: "REMW",
	zk.OpGetEphemerals: "GETE", zk.OpWhoAmI: "HOMI",
}

func opName(op zk.Op) string {
	if name := opNames[op]; name != "" {
		return name
	}
	return "NA"
}
