package tree

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"platter/coord/zk"
)

// randomEntry makes the next entry over a small space of paths, sessions and versions, so that it often
// succeeds and often fails.
func randomEntry(r *rand.Rand, zxid int64) Entry {
	e := Entry{
		Zxid: zxid, TimeMs: 1_000_000 + zxid, Session: 1 + r.Int64N(4), Options: Options(r.IntN(4)),
		Auth: []zk.ID{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "digest", ID: "u:h"}, Super}[:r.IntN(4)],
	}
	switch k := r.IntN(24); {
	case k == 20:
		e.Session, e.Op, e.Body = 0, zk.OpDeleteContainer, zk.AppendString(nil, randomPath(r))
	case k == 21:
		e.Op, e.Body = zk.OpError, FailedBody(zk.Marshalling)
	case k == 22:
		e.Op, e.Body = zk.OpCheck, zk.DeleteRequest{Path: randomPath(r), Version: randomVersion(r)}.Append(nil)
	case k == 0:
		e.Op, e.Body = zk.OpCreateSession, SessionBody{4000, []byte("0123456789abcdef")}.Append(nil)
	case k == 1:
		e.Op = zk.OpCloseSession
	case k == 2:
		q := zk.SetACLRequest{Path: randomPath(r), ACL: randomACL(r), Version: randomVersion(r)}
		e.Op, e.Body = zk.OpSetACL, q.Append(nil)
	case k < 9:
		var q zk.MultiRequest
		for range r.IntN(6) {
			q.Ops = append(q.Ops, randomOp(r))
		}
		e.Op, e.Body = zk.OpMulti, q.Append(nil)
	default:
		o := randomOp(r)
		switch e.Op = o.Op; o.Op {
		case zk.OpCreate, zk.OpCreate2, zk.OpCreateContainer, zk.OpCreateTTL:
			e.Body = o.Create.Append(nil, o.Op)
		case zk.OpSetData:
			e.Body = o.Set.Append(nil)
		default:
			e.Op, e.Body = zk.OpDelete, o.Target.Append(nil)
		}
	}
	return e
}

func randomACL(r *rand.Rand) []zk.ACL {
	ids := []zk.ID{{Scheme: "world", ID: "anyone"}, {Scheme: "auth"}, {Scheme: "digest", ID: "u:h"}, {Scheme: "ip", ID: "127.0.0.0/8"}}
	if r.IntN(2) == 0 {
		ids = ids[:1]
	}
	return []zk.ACL{{Perms: int32(1 + r.IntN(31)), ID: ids[r.IntN(len(ids))]}, {Perms: zk.PermRead, ID: ids[0]}}
}

// quotaNodes are where limits and counts of quotas stand.
var quotaNodes = []string{"/zookeeper/quota/a", "/zookeeper/quota/a" + zk.LimitsName, "/zookeeper/quota/a" + zk.StatsName}

func randomPath(r *rand.Rand) string {
	p := ""
	if r.IntN(6) == 0 {
		return quotaNodes[r.IntN(len(quotaNodes))]
	}
	for range 1 + r.IntN(3) {
		p += string([]byte{'/', 'a' + byte(r.IntN(3))})
	}
	return p
}

func randomVersion(r *rand.Rand) int32 { return int32(r.IntN(4)) - 1 }

func randomOp(r *rand.Rand) zk.MultiOp {
	data := bytes.Repeat([]byte("d"), r.IntN(4))
	if r.IntN(4) == 0 {
		data = fmt.Appendf(nil, "count=%d,bytes=%d;countHardLimit=%d", r.IntN(6)-1, r.IntN(9)-1, r.IntN(6)-1)
	}
	o := zk.MultiOp{
		Create: zk.CreateRequest{Path: randomPath(r), Data: data, ACL: randomACL(r), Flags: int32(r.IntN(7)), TTLMs: int64(r.IntN(40))},
		Set:    zk.SetDataRequest{Path: randomPath(r), Data: data, Version: randomVersion(r)},
		Target: zk.DeleteRequest{Path: randomPath(r), Version: randomVersion(r)},
	}
	o.Op = []zk.Op{zk.OpCreate, zk.OpCreate, zk.OpCreate2, zk.OpCreateContainer, zk.OpCreateTTL, zk.OpSetData, zk.OpSetData,
		zk.OpDelete, zk.OpDelete, zk.OpCheck}[r.IntN(10)]
	return o
}

// state is a snapshot's bytes without the zxid that they start with.
func state(t testing.TB, tr *Tree) []byte { return bytes.Join(encode(t, tr), nil)[9:] }

// TestRandom holds the tree to what is said of it: a failed entry changes nothing, a capture stays as
// it was, a snapshot loads to the same tree, and the same entries give the same tree from anywhere.
func TestRandom(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			tr, twin := New(), New()
			captured, want := tr.Capture(), state(t, tr)
			for i := range int64(400) {
				e := randomEntry(r, i+1)
				before := state(t, tr)
				res, changes := tr.Apply(&e)
				failed := res.Err != zk.OK || res.Multi.Failed
				if same := bytes.Equal(before, state(t, tr)); failed && (!same || len(changes) > 0) {
					t.Fatalf("entry %d (%d) failed, and yet it changed the tree: %v", i, e.Op, changes)
				}
				// The twin has it from the log's bytes.
				again, err := DecodeEntry(e.Append(nil))
				if err != nil {
					t.Fatalf("entry %d (%d): %v", i, e.Op, err)
				}
				if res2, _ := twin.Apply(&again); !reflect.DeepEqual(res, res2) {
					t.Fatalf("entry %d (%d): %+v, and again %+v", i, e.Op, res, res2)
				}
				if i%50 == 0 {
					twin = reload(t, twin)
					checkCapture(t, captured, want)
					captured, want = tr.Capture(), state(t, tr)
				}
			}
			checkCapture(t, captured, want)
			if !bytes.Equal(state(t, tr), state(t, twin)) || tr.Zxid() != twin.Zxid() {
				t.Fatal("a tree that went through snapshots differs from one that did not")
			}
			checkCounts(t, tr)
			checkCounts(t, twin)
		})
	}
}

func checkCapture(t *testing.T, c *Capture, want []byte) {
	t.Helper()
	var got []byte
	err := c.Encode(func(b []byte) error {
		got = append(got, b...)
		return nil
	})
	if err != nil || !bytes.Equal(got[9:], want) {
		t.Fatal("a capture changed after it was taken", err)
	}
}

// checkCounts compares the counters with what a walk finds.
func checkCounts(t *testing.T, tr *Tree) {
	t.Helper()
	nodes, ephemerals, reaped, limits, bytes := 0, 0, 0, 0, 0
	lists := map[*acl]int{}
	walk(tr.root, "/", func(p string, n *node) {
		nodes++
		bytes += len(p) + len(n.data)
		lists[n.acl]++
		all, data := int64(0), int64(0)
		if n.count(&all, &data); int64(n.below) != all-1 {
			t.Fatalf("%d nodes below %s, counted %d", all-1, p, n.below)
		}
		if of, ok := quotaOf(p, zk.LimitsName); ok {
			if _, ok := tr.quotas.limited[of]; !ok {
				t.Fatalf("the limits of %s are not known", of)
			}
			limits++
		}
		if _, ok := tr.reaped[p]; ok != (n.owner != 0 && !ofSession(n.owner)) {
			t.Fatalf("%s is to be reaped: %v", p, ok)
		} else if ok {
			reaped++
		}
		if !ofSession(n.owner) {
			return
		}
		ephemerals++
		if _, ok := tr.sessions[n.owner].ephemerals[p]; !ok {
			t.Fatalf("%s is not in its session's list", p)
		}
	})
	listed := 0
	for _, s := range tr.sessions {
		listed += len(s.ephemerals)
	}
	for a, n := range lists {
		if a.nodes != n || tr.acls[a.key] != a {
			t.Fatalf("%d nodes have %v, counted %d", n, a.list, a.nodes)
		}
	}
	if len(lists) != len(tr.acls) || reaped != len(tr.reaped) || limits != len(tr.quotas.limited) || int64(bytes) != tr.DataBytes() {
		t.Fatalf("%d lists, kept %d; %d to be reaped, listed %d; %d limits, listed %d; %d bytes, counted %d",
			len(lists), len(tr.acls), reaped, len(tr.reaped), limits, len(tr.quotas.limited), bytes, tr.DataBytes())
	}
	if nodes != tr.NodeCount() || ephemerals != listed || ephemerals != tr.EphemeralCount() {
		t.Fatalf("%d nodes, counted %d; %d ephemerals, listed %d, counted %d", nodes, tr.NodeCount(), ephemerals, listed, tr.EphemeralCount())
	}
}

// FuzzEntry: whatever stands in a log is an entry or an error, and applies without a panic.
func FuzzEntry(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range int64(40) {
		e := randomEntry(r, i+1)
		e.Auth = []zk.ID{{Scheme: "digest", ID: "u:h"}}
		f.Add(e.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEntry(b)
		if err != nil {
			return
		}
		tr := New()
		open := Entry{Zxid: 1, Session: e.Session, Op: zk.OpCreateSession, Body: SessionBody{1, nil}.Append(nil)}
		tr.Apply(&open)
		e.Zxid = 2
		tr.Apply(&e)
		checkCounts(t, tr)
		if !bytes.Equal(state(t, tr), state(t, reload(t, tr))) {
			t.Fatal("the tree does not survive its snapshot")
		}
	})
}

// FuzzLoader: whatever stands in a snapshot is a tree or an error.
func FuzzLoader(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 4 {
		tr := New()
		for range 60 {
			e := randomEntry(r, tr.Zxid()+1)
			tr.Apply(&e)
		}
		f.Add(bytes.Join(encode(f, tr), nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := NewLoader()
		if l.Chunk(b) != nil {
			return
		}
		tr, err := l.Finish()
		if err != nil {
			return
		}
		e := Entry{Zxid: tr.Zxid() + 1, Session: 1, Op: zk.OpCloseSession}
		tr.Apply(&e)
		state(t, tr)
	})
}
