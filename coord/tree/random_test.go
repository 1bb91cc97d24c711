package tree

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"platter/coord/zk"
)

// randomEntry makes the next entry over a small space of paths, sessions and versions, so that it often
// succeeds and often fails.
func randomEntry(r *rand.Rand, zxid int64) Entry {
	e := Entry{Zxid: zxid, TimeMs: 1_000_000 + zxid, Session: 1 + r.Int64N(4)}
	switch k := r.IntN(20); {
	case k == 0:
		e.Op, e.Body = zk.OpCreateSession, SessionBody{4000, []byte("0123456789abcdef")}.Append(nil)
	case k == 1:
		e.Op = zk.OpCloseSession
	case k == 2:
		acl := []zk.ACL{{Perms: int32(1 + r.IntN(31)), ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		e.Op, e.Body = zk.OpSetACL, zk.SetACLRequest{Path: randomPath(r), ACL: acl, Version: randomVersion(r)}.Append(nil)
	case k < 9:
		var q zk.MultiRequest
		for range r.IntN(6) {
			q.Ops = append(q.Ops, randomOp(r))
		}
		e.Op, e.Body = zk.OpMulti, q.Append(nil)
	default:
		o := randomOp(r)
		switch e.Op = o.Op; o.Op {
		case zk.OpCreate:
			e.Body = o.Create.Append(nil, o.Op)
		case zk.OpSetData:
			e.Body = o.Set.Append(nil)
		default:
			e.Op, e.Body = zk.OpDelete, o.Target.Append(nil)
		}
	}
	return e
}

func randomPath(r *rand.Rand) string {
	p := ""
	for range 1 + r.IntN(3) {
		p += string([]byte{'/', 'a' + byte(r.IntN(3))})
	}
	return p
}

func randomVersion(r *rand.Rand) int32 { return int32(r.IntN(4)) - 1 }

func randomOp(r *rand.Rand) zk.MultiOp {
	data := bytes.Repeat([]byte("d"), r.IntN(4))
	o := zk.MultiOp{
		Create: zk.CreateRequest{Path: randomPath(r), Data: data, ACL: zk.WorldAnyone(), Flags: int32(r.IntN(4))},
		Set:    zk.SetDataRequest{Path: randomPath(r), Data: data, Version: randomVersion(r)},
		Target: zk.DeleteRequest{Path: randomPath(r), Version: randomVersion(r)},
	}
	o.Op = []zk.Op{zk.OpCreate, zk.OpCreate, zk.OpSetData, zk.OpDelete, zk.OpCheck}[r.IntN(5)]
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
				twin.Apply(&e)
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
	nodes, ephemerals := 0, 0
	walk(tr.root, "/", func(p string, n *node) {
		nodes++
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
	if nodes != tr.NodeCount() || ephemerals != listed {
		t.Fatalf("%d nodes, counted %d; %d ephemerals, listed %d", nodes, tr.NodeCount(), ephemerals, listed)
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
