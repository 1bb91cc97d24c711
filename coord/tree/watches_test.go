package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"platter/coord/zk"
)

func TestWatches(t *testing.T) {
	w := NewWatches(func(string) []zk.ID { return nil })
	fire := func(typ zk.EventType, path string) string {
		var told []string
		w.Fire(Change{Type: typ, Path: path}, func(who string, typ zk.EventType, path string) {
			told = append(told, fmt.Sprintf("%s:%d%s", who, typ, path))
		})
		slices.Sort(told)
		return strings.Join(told, " ")
	}
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("told %q, want %q", got, want)
		}
	}
	w.Add(WatchData, OneShot, "/a", "x")
	w.Add(WatchData, OneShot, "/a", "x")
	w.Add(WatchData, OneShot, "/a", "y")
	w.Add(WatchChild, OneShot, "/a", "x")
	w.Add(WatchChild, OneShot, "/", "z")
	check(fire(zk.EventDataChanged, "/a"), "x:3/a y:3/a")
	check(fire(zk.EventDataChanged, "/a"), "")
	check(fire(zk.EventCreated, "/a/b"), "x:4/a")
	w.Add(WatchData, OneShot, "/a", "x")
	w.Add(WatchChild, OneShot, "/a", "x")
	w.Add(WatchChild, OneShot, "/a", "y")
	check(fire(zk.EventDeleted, "/a"), "x:2/a y:2/a z:4/")
	w.Add(WatchData, OneShot, "/missing", "y")
	check(fire(zk.EventCreated, "/missing"), "y:1/missing")
	w.Add(WatchData, OneShot, "/a", "x")
	w.Add(WatchChild, OneShot, "/b", "x")
	w.Add(WatchChild, OneShot, "/b", "y")
	w.Remove("x")
	check(fire(zk.EventDeleted, "/b"), "y:2/b")
	if w.bytes != 0 || len(w.of)+len(w.tables[WatchData])+len(w.tables[WatchChild]) != 0 {
		t.Fatalf("%+v is left", w)
	}
	one, _ := w.Add(WatchData, OneShot, "/a", "x")
	w.Add(WatchChild, OneShot, "/a", "x")
	if mine, all := w.Add(WatchData, OneShot, "/a", "y"); mine != one || all != 3*one {
		t.Fatal(one, mine, all)
	}
	if mine, all := w.Add(WatchChild, OneShot, "/a", "x"); mine != 2*one || all != 3*one {
		t.Fatal(one, mine, all)
	}
}
