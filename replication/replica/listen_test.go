package replica

import (
	"slices"
	"sync"
	"testing"

	"platter/engine/commitlog"
	"platter/replication/core"
)

// list is what a listener was told.
type list struct {
	mu       sync.Mutex
	follower *Follower
	told     []bool // of each call: nothing moved but the high watermark
	insists  bool   // it wants to be told of more where only that has moved
}

func (l *list) Follower() *Follower { return l.follower }

func (l *list) Moved(watermark bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, watermark)
	return watermark && l.insists
}

// TestListen: a listener is told once, of whatever moves, and whether it was only the high watermark.
func TestListen(t *testing.T) {
	r := leader(t, &fakeLog{}, 1, 1, 2)
	l := &list{}
	step := func(what string, calls int, do func()) {
		t.Helper()
		do()
		if len(l.told) != calls {
			t.Errorf("%s: told %d times, want %d", what, len(l.told), calls)
		}
	}
	step("an append", 1, func() { r.Listen(l); r.Listen(l); add(r, 1) })
	step("another", 1, func() { add(r, 1) })
	step("a follower", 2, func() {
		r.Listen(l)
		fetched(t, r, 1)
	})
	step("a trim", 3, func() { r.Listen(l); r.Advance() })
	step("settings", 4, func() { r.Listen(l); r.SetConfig(commitlog.Config{}, 2) })
	step("not any more", 4, func() { r.Listen(l); r.Unlisten(l); r.Unlisten(l); add(r, 1) })
	step("leadership", 5, func() { r.Listen(l); assign(t, r, 1, 2, 1, 2) })
	step("the end", 6, func() { r.Listen(l); r.Stop() })
}

// TestListenOn: a listener for whom the high watermark is not enough misses nothing that comes behind it.
func TestListenOn(t *testing.T) {
	r := leader(t, &fakeLog{}, 1, 1, 2)
	l := &list{insists: true}
	add(r, 1)
	r.Listen(l)
	if err := r.FollowerFetched(core.Fetch{Broker: 2, Offset: 1}); err != nil {
		t.Fatal(err)
	}
	add(r, 1)
	add(r, 1)
	if !slices.Equal(l.told, []bool{true, false}) {
		t.Errorf("told %v", l.told)
	}
}

// TestHeard: a follower that goes on fetching without naming the partition, since nothing moves there, has not lagged when
// something does; one that has stopped fetching has, since it stopped.
func TestHeard(t *testing.T) {
	for _, c := range []struct {
		what string
		f    *Follower
		atMs int64
		lags bool
	}{
		{"it was heard of just now", &Follower{Broker: 2}, 1000, false},
		{"it was heard of a while ago", &Follower{Broker: 2}, 1001, true},
		{"it has registered anew since", &Follower{Broker: 2, Epoch: 7}, 1000, true},
		{"nobody listens for it", nil, 1000, true},
	} {
		r := leader(t, &fakeLog{}, 1, 1, 2)
		fetched(t, r, 0)
		l := &list{follower: c.f}
		if c.f != nil {
			c.f.HeardMs.Store(1000)
		}
		r.Listen(l)
		r.Tick(900)
		if _, wants := r.Proposal(); wants {
			t.Errorf("%s: nothing has moved, and it is proposed out", c.what)
		}
		add(r, 1)
		r.Tick(c.atMs)
		if _, lags := r.Proposal(); lags != c.lags {
			t.Errorf("%s: lags %v, want %v", c.what, lags, c.lags)
		}
	}
}

// TestHeardBehind: being heard of says nothing of a follower that did not have everything when it was last noted.
func TestHeardBehind(t *testing.T) {
	r := leader(t, &fakeLog{}, 1, 1, 2)
	add(r, 1)
	add(r, 1)
	fetched(t, r, 1)
	l := &list{follower: &Follower{Broker: 2}}
	l.follower.HeardMs.Store(1000)
	r.Listen(l)
	r.Tick(1000)
	if _, lags := r.Proposal(); !lags {
		t.Error("it counts as caught up")
	}
}
