package api_test

import (
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/net/api"
	"platter/replication/replica"
)

// still is a partition in which nothing moves unless the test says so; it counts who looks.
type still struct {
	api.Partition
	mu    sync.Mutex
	looks int
	lost  bool
	told  map[replica.Listener]bool
}

func (p *still) Listen(l replica.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[l] = true
}

func (p *still) Unlisten(l replica.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.told, l)
}

func (p *still) State(int32) (replica.State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	return replica.State{IsLeader: !p.lost}, nil
}

func (p *still) Read(int64, int64, replica.Isolation, int32, bool) (commitlog.Read, replica.State, error) {
	st, _ := p.State(-1)
	if !st.IsLeader {
		return commitlog.Read{}, st, replica.ErrNotLeader
	}
	return commitlog.Read{}, st, nil
}

// lose ends the leadership, which is something to tell.
func (p *still) lose() {
	p.mu.Lock()
	p.lost = true
	told := p.told
	p.told = map[replica.Listener]bool{}
	p.mu.Unlock()
	for l := range told {
		l.Moved(false)
	}
}

func (p *still) listeners() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.told)
}

// stillReplicas are many of them, all of topic "t".
type stillReplicas []*still

func newStill(n int) stillReplicas {
	all := make(stillReplicas, n)
	for i := range all {
		all[i] = &still{told: map[replica.Listener]bool{}}
	}
	return all
}

func (s stillReplicas) Replica(tp store.TP) (api.Partition, error)  { return s[tp.Partition], nil }
func (s stillReplicas) TopicName(store.UUID) (name string, ok bool) { return "", false }

// looks is how often anybody has looked at any of them since the last call.
func (s stillReplicas) looks() (n int) {
	for _, p := range s {
		p.mu.Lock()
		n += p.looks
		p.looks = 0
		p.mu.Unlock()
	}
	return n
}

func (s stillReplicas) listeners() (n int) {
	for _, p := range s {
		n += p.listeners()
	}
	return n
}

// TestSessionCost: a fetch in a session looks at what has moved, however many partitions the session has.
func TestSessionCost(t *testing.T) {
	const count = 500
	all := newStill(count)
	p := startFollower(t, all).dial()
	everything := make([]int32, count)
	for i := range everything {
		everything[i] = int32(i)
	}
	fetch := func(epoch int32, id int32, partitions ...int32) *kmsg.FetchResponse {
		req := sessionFetch(id, epoch, partitions...)
		req.MaxWaitMillis = min(epoch, 1)
		return ask[*kmsg.FetchResponse](p, 12, req)
	}
	id := fetch(0, 0, everything...).SessionID
	if id == 0 {
		t.Fatal("no session")
	}
	fetch(1, id)
	all.looks()
	for epoch := range int32(5) {
		fetch(2+epoch, id)
	}
	if n := all.looks(); n != 0 {
		t.Errorf("nothing moved in %d partitions, and they were looked at %d times", count, n)
	}
	fetch(7, id, 3)
	if n := all.looks(); n == 0 || n > 3 {
		t.Errorf("one was asked for anew, and there were %d looks", n)
	}
	all[4].lose()
	if resp := fetch(8, id); answered(resp) != "4:NOT_LEADER_OR_FOLLOWER" {
		t.Errorf("answered %s", answered(resp))
	}
	if n := all.looks(); n == 0 || n > 3 {
		t.Errorf("one has moved, and there were %d looks", n)
	}
	if all.listeners() == 0 {
		t.Error("nobody listens")
	}
	req := sessionFetch(id, -1)
	req.MaxWaitMillis = 1
	ask[*kmsg.FetchResponse](p, 12, req)
	if n := all.listeners(); n != 0 {
		t.Errorf("%d partitions have a listener after the session's end", n)
	}
}

// TestSessionWakes: a fetch that waits is woken by what moves, and one partition's move does not look at the others.
func TestSessionWakes(t *testing.T) {
	all := newStill(100)
	p := startFollower(t, all).dial()
	everything := make([]int32, len(all))
	for i := range everything {
		everything[i] = int32(i)
	}
	first := sessionFetch(0, 0, everything...)
	first.MaxWaitMillis = 0
	id := ask[*kmsg.FetchResponse](p, 12, first).SessionID
	second := sessionFetch(id, 1)
	second.MaxWaitMillis = 1
	ask[*kmsg.FetchResponse](p, 12, second)
	all.looks()
	long := sessionFetch(id, 2)
	long.MaxWaitMillis = 1 << 30
	sent := p.send(12, long)
	all[7].lose()
	if got := answered(p.receive(sent, long).(*kmsg.FetchResponse)); got != "7:NOT_LEADER_OR_FOLLOWER" {
		t.Errorf("answered %s", got)
	}
	if n := all.looks(); n > 3 {
		t.Errorf("%d looks", n)
	}
}

// TestSessionGoesOn: a fetcher whose connection was cut, which the broker does not know yet, goes on by another one.
func TestSessionGoesOn(t *testing.T) {
	all := newStill(2)
	b := startFollower(t, all)
	p, q := b.dial(), b.dial()
	first := sessionFetch(0, 0, 0, 1)
	first.MaxWaitMillis = 0
	id := ask[*kmsg.FetchResponse](p, 12, first).SessionID
	long := sessionFetch(id, 1)
	long.MaxWaitMillis = 1 << 30
	sent := p.send(12, long)
	for end := time.Now().Add(time.Minute); all.listeners() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the first fetch does not wait")
		}
	}
	next := sessionFetch(id, 2)
	next.MaxWaitMillis = 1
	if resp := ask[*kmsg.FetchResponse](q, 12, next); resp.ErrorCode != 0 || resp.SessionID != id {
		t.Errorf("the second fetch: %v", api.Code(resp.ErrorCode))
	}
	if resp := p.receive(sent, long).(*kmsg.FetchResponse); resp.ErrorCode != 0 {
		t.Errorf("the first fetch: %v", api.Code(resp.ErrorCode))
	}
}
