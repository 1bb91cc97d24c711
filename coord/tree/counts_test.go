package tree

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"platter/coord/zk"
)

// walked is what Counts should tell, by a walk.
func walked(w *Watches[int]) (c WatchCounts) {
	for _, x := range w.of {
		bytes, data := 0, 0
		for path, m := range x.paths {
			for k := range watchKinds {
				if m.of(k) != 0 {
					bytes += watchBytes(path)
					c.All++
				}
			}
			if m.of(WatchData) != 0 {
				data++
			}
		}
		if data > 0 {
			c.Watchers++
		}
		c.Data += data
		c.Bytes += bytes
	}
	paths := map[string]bool{}
	w.Each(func(_ int, path string) { paths[path] = true })
	c.Paths = len(paths)
	return c
}

// TestWatchCounts: whatever comes and goes, the counters are what a walk finds.
func TestWatchCounts(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := NewWatches(func(int) []zk.ID { return nil })
		for i := range 3000 {
			path, who := randomPath(r), r.IntN(5)
			switch r.IntN(8) {
			case 0:
				w.Remove(who)
			case 1:
				w.Drop(zk.WatcherType(1+r.IntN(3)), path, who)
			case 2, 3:
				typ := []zk.EventType{zk.EventCreated, zk.EventDeleted, zk.EventDataChanged}[r.IntN(3)]
				w.Fire(Change{Type: typ, Path: path}, func(int, zk.EventType, string) {})
			default:
				w.Add(WatchKind(r.IntN(2)), WatchMode(1+r.IntN(3)), path, who)
			}
			if got, want := w.Counts(), walked(w); got != want {
				t.Fatalf("seed %d, step %d: counted %+v, there are %+v", seed, i, got, want)
			}
		}
		for who := range 5 {
			w.Remove(who)
		}
		if got := w.Counts(); got != (WatchCounts{}) || len(w.of)+len(w.recursive) != 0 {
			t.Fatalf("seed %d: with all watchers gone %+v is left", seed, got)
		}
	}
}

// TestLongWalksPause: what walks many watches lets a change in between, and leaves nothing behind.
func TestLongWalksPause(t *testing.T) {
	w := NewWatches(func(string) []zk.ID { return nil })
	const n = 10 * lookedAtOnce
	for i := range n {
		w.Add(WatchData, OneShot, fmt.Sprint("/n", i), "many")
	}
	// What is told of fires inside the walk: with the table locked throughout it would wait for ever.
	done, fired := make(chan struct{}), 0
	w.Each(func(_, path string) {
		if fired++; fired == 1 {
			go func() {
				defer close(done)
				for i := range n {
					w.Fire(Change{Type: zk.EventDataChanged, Path: fmt.Sprint("/n", i)}, func(string, zk.EventType, string) {})
				}
			}()
		}
	})
	<-done
	if got := w.Counts(); got != (WatchCounts{}) {
		t.Fatalf("%+v after all watches were told", got)
	}
	for i := range n {
		w.Add(WatchChild, Recursive, fmt.Sprint("/n", i), "many")
	}
	go w.Remove("many")
	for w.Counts().All > 0 {
		w.Fire(Change{Type: zk.EventDeleted, Path: "/n1"}, func(string, zk.EventType, string) {})
	}
}

// TestReapablePauses: a long look for what is to go lets the tree change in between.
func TestReapablePauses(t *testing.T) {
	tr := New()
	apply := func(op zk.Op, body []byte) {
		if r, _ := tr.Apply(&Entry{Zxid: tr.Zxid() + 1, TimeMs: 1000, Session: 1, Op: op, Body: body}); r.Err != zk.OK {
			t.Fatal(op, r.Err)
		}
	}
	apply(zk.OpCreateSession, SessionBody{4000, nil}.Append(nil))
	const n = 5*lookedAtOnce + 1
	for i := range n {
		q := zk.CreateRequest{Path: fmt.Sprint("/c", i), ACL: zk.WorldAnyone(), Flags: zk.FlagContainer}
		apply(zk.OpCreateContainer, q.Append(nil, zk.OpCreateContainer))
	}
	pauses := 0
	left := tr.Reapable(5000, 1, func() {
		for i := range 100 {
			apply(zk.OpDelete, zk.DeleteRequest{Path: fmt.Sprint("/c", pauses*100+i), Version: -1}.Append(nil))
		}
		pauses++
	})
	if pauses == 0 || len(left) > n || len(left) < n-100*pauses {
		t.Fatalf("%d pauses, %d of %d are to go", pauses, len(left), n)
	}
	for _, path := range tr.Reapable(5000, 1, func() {}) {
		if tr.find(path) == nil {
			t.Fatalf("%s is gone already", path)
		}
	}
}
