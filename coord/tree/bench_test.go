package tree

import (
	"fmt"
	"testing"

	"platter/coord/zk"
)

// grown is a tree like that of a cluster with n partitions.
func grown(n int) *Tree {
	t := New()
	apply := func(op zk.Op, body []byte) {
		t.Apply(&Entry{Zxid: t.Zxid() + 1, Session: 1, Op: op, Body: body})
	}
	create := func(path, data string) {
		q := zk.CreateRequest{Path: path, Data: []byte(data), ACL: zk.WorldAnyone()}
		apply(zk.OpCreate, q.Append(nil, zk.OpCreate))
	}
	apply(zk.OpCreateSession, SessionBody{4000, nil}.Append(nil))
	for _, p := range []string{"/brokers", "/brokers/topics", "/brokers/topics/t", "/brokers/topics/t/partitions"} {
		create(p, "{}")
	}
	for i := range n {
		p := fmt.Sprintf("/brokers/topics/t/partitions/%d", i)
		create(p, "")
		create(p+"/state", `{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}`)
	}
	return t
}

// BenchmarkLoad loads 10,000 nodes.
func BenchmarkLoad(b *testing.B) {
	chunks := encode(b, grown(5000))
	for b.Loop() {
		l := NewLoader()
		for _, c := range chunks {
			if err := l.Chunk(c); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkEncode writes 10,000 nodes.
func BenchmarkEncode(b *testing.B) {
	t := grown(5000)
	for b.Loop() {
		t.Capture().Encode(func([]byte) error { return nil })
	}
}

func BenchmarkSet(b *testing.B) {
	t := grown(1000)
	q := zk.SetDataRequest{Path: "/brokers/topics/t/partitions/77/state", Data: make([]byte, 80), Version: -1}
	body := q.Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		t.Apply(&Entry{Zxid: t.Zxid() + 1, Session: 1, Op: zk.OpSetData, Body: body})
	}
}

func BenchmarkGet(b *testing.B) {
	t := grown(1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, code := t.Get("/brokers/topics/t/partitions/77/state", nil); code != zk.OK {
			b.Fatal(code)
		}
	}
}

// BenchmarkCapture is all that a snapshot takes from who writes: the capture of a million nodes under one parent, and
// the first write after it, which copies the way to its node.
func BenchmarkCapture(b *testing.B) {
	t := New()
	apply := func(op zk.Op, body []byte) {
		t.Apply(&Entry{Zxid: t.Zxid() + 1, Session: 1, Op: op, Body: body})
	}
	apply(zk.OpCreateSession, SessionBody{4000, nil}.Append(nil))
	for i := range 1_000_000 {
		q := zk.CreateRequest{Path: fmt.Sprintf("/%d", i), ACL: zk.WorldAnyone()}
		apply(zk.OpCreate, q.Append(nil, zk.OpCreate))
	}
	q := zk.SetDataRequest{Path: "/77", Data: make([]byte, 80), Version: -1}
	set := q.Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		t.Capture()
		apply(zk.OpSetData, set)
	}
}
