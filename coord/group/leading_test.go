package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"platter/coord/group/core"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/faultdisk"
	"platter/io/memdisk"
	rcore "platter/replication/core"
)

// TestLeadershipGoes: who waits is told to look for another coordinator, and nothing is served from before.
func TestLeadershipGoes(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	b.form("g")
	waiting := make(chan core.JoinReply)
	go func() { waiting <- b.co.Join(context.Background(), "g", joinRequest("")) }()
	for {
		if d, _ := b.co.Describe("g"); d.State == core.PreparingRebalance {
			break
		}
		time.Sleep(time.Millisecond)
	}
	b.epoch++
	b.roles(2)
	if r := <-waiting; !errors.Is(r.Err, ErrNotCoordinator) {
		t.Errorf("a join that waited: %v", r.Err)
	}
	if err := b.commit("h", "t", 1); !errors.Is(err, ErrNotCoordinator) {
		t.Errorf("a commit: %v", err)
	}
	b.lead()
	b.ready()
	d, err := b.co.Describe("g")
	if err != nil || d.State != core.Stable {
		t.Errorf("described: %+v %v", d, err)
	}
	must(t, b.commit("h", "t", 1))
}

// TestUncommittedOffsets: a new leader tells nobody of an offset that is not committed in the log: the next leader may not
// have it.
func TestUncommittedOffsets(t *testing.T) {
	b := newBroker(t, clock.Real{}, nil)
	b.find("g")
	must(t, b.commit("g", "t", 5))
	b.isr = []int32{1, 2} // the follower has not fetched
	b.lead()
	b.ready()
	p := PartitionOf("g", partitions)
	r, err := b.host.Replica(store.TP{Topic: Topic, Partition: p})
	must(t, err)
	before, _ := r.State(-1)
	done := make(chan error, 1)
	go func() { done <- b.commit("g", "t", 7) }()
	eventually(t, "the offset is in the log", func() bool { st, _ := r.State(-1); return st.LogEnd > before.LogEnd })
	b.epoch++ // another may have led
	b.lead()
	if err := <-done; err == nil {
		t.Error("an offset that the follower does not have was acknowledged")
	}
	time.Sleep(50 * time.Millisecond) // a chance to go wrong
	if s, err := b.co.shard(p); err == nil && s.ready() {
		t.Error("groups are served that are not committed")
	}
	st, _ := r.State(-1)
	must(t, r.FollowerFetched(rcore.Fetch{Broker: 2, LeaderEpoch: st.LeaderEpoch, Offset: st.LogEnd, Durable: st.LogEnd}))
	eventually(t, "it is served", func() bool { s, err := b.co.shard(p); return err == nil && s.ready() })
	b.wantOffset("g", "t", 7)
}

// TestNextEpoch: a leader that is given the next epoch goes on with its groups as they are: a rebalance that is under way,
// and a commit that waits for a follower.
func TestNextEpoch(t *testing.T) {
	b := newBroker(t, virtual(), nil)
	b.find("g")
	first := b.form("g")
	b.isr = []int32{1, 2} // the follower has not fetched
	b.lead()
	p := PartitionOf("g", partitions)
	r, err := b.host.Replica(store.TP{Topic: Topic, Partition: p})
	must(t, err)
	joined := make(chan core.JoinReply, 1)
	go func() { joined <- b.co.Join(context.Background(), "g", joinRequest("")) }()
	eventually(t, "a rebalance", func() bool { d, _ := b.co.Describe("g"); return d.State == core.PreparingRebalance })
	before, _ := r.State(-1)
	committed := make(chan error, 1)
	go func() { committed <- b.commit("g", "t", 7) }()
	go func() {
		committed <- b.co.Commit(&CommitRequest{Group: "g", MemberID: first.MemberID, Generation: first.Generation, RetentionMs: -1,
			Offsets: []Committed{{TP: store.TP{Topic: "t"}, Offset: core.Offset{Offset: 7}}}})
	}()
	if err := <-committed; !errors.Is(err, core.ErrUnknownMember) {
		t.Fatalf("a commit of somebody else: %v", err)
	}
	eventually(t, "the offset is in the log", func() bool { st, _ := r.State(-1); return st.LogEnd > before.LogEnd })
	b.lead()
	b.isr = nil // the follower is gone
	b.lead()
	if err := <-committed; err != nil {
		t.Errorf("a commit that waited: %v", err)
	}
	b.wantOffset("g", "t", 7)
	if d, err := b.co.Describe("g"); err != nil || d.State != core.PreparingRebalance {
		t.Errorf("the rebalance under way: %+v %v", d, err)
	}
	again := joinRequest(first.MemberID)
	if j := b.co.Join(context.Background(), "g", again); j.Err != nil || j.Generation != first.Generation+1 {
		t.Errorf("the first member joins again: %+v", j)
	}
	if j := <-joined; j.Err != nil || j.Generation != first.Generation+1 {
		t.Errorf("a join that waited: %+v", j)
	}
}

// TestManyEpochs: no commit notices that the leader is given one epoch after the other.
func TestManyEpochs(t *testing.T) {
	b := newBroker(t, virtual(), nil)
	b.find("g")
	var all sync.WaitGroup
	left := atomic.Int32{}
	for g := range 4 {
		left.Add(1)
		all.Go(func() {
			defer left.Add(-1)
			id := fmt.Sprint("g", g)
			for i := range int64(300) {
				if err := b.commit(id, "t", i); err != nil {
					t.Errorf("%s, commit %d: %v", id, i, err)
					return
				}
			}
		})
	}
	for left.Load() > 0 {
		b.lead()
	}
	all.Wait()
	for g := range 4 {
		b.wantOffset(fmt.Sprint("g", g), "t", 299)
	}
}

// TestLoadAgain: groups that could not be loaded since files could not be read for a while are there once they can.
func TestLoadAgain(t *testing.T) {
	fs := faultdisk.New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	b := newBrokerOn(t, fs, clock.Real{}, nil)
	b.find("g")
	must(t, b.commit("g", "t", 5))
	must(t, fs.Script("read *.log: EMFILE times 3"))
	b.epoch++ // another may have led
	b.lead()
	eventually(t, "a read fails", func() bool { return len(fs.Fired()) > 0 })
	eventually(t, "the groups are loaded", func() bool {
		s, err := b.co.shard(PartitionOf("g", partitions))
		return err == nil && s.ready()
	})
	b.wantOffset("g", "t", 5)
}
