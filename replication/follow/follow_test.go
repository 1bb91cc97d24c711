package follow

import (
	"fmt"
	"testing"

	"platter/engine/store"
	"platter/replication/replica"
)

var tp = store.TP{Topic: "t", Partition: 0}

func TestFollow(t *testing.T) {
	r := newRig(t)
	var leaders, followers []*replica.Replica
	for n := range int32(20) {
		one := store.TP{Topic: "t", Partition: n}
		leaders = append(leaders, r.replica(1+n%2, one, 1+n%2, 0))
		followers = append(followers, r.replica(3, one, 1+n%2, 0))
		r.produce(leaders[n], "a", "b")
		r.manager.Follow(one, topicID, followers[n])
	}
	for n := range leaders {
		r.produce(leaders[n], fmt.Sprint(n), "c")
	}
	for n := range leaders {
		r.same(leaders[n], followers[n])
		r.eventually("the high watermark follows", func() bool {
			st, _ := followers[n].State(-1)
			return st.HighWatermark == 4
		})
	}
	if all, resting := r.manager.Count(); all != 20 || resting != 0 {
		t.Errorf("%d followed, %d rest", all, resting)
	}
}

// TestDivergence: what the leader does not have goes, and only that.
func TestDivergence(t *testing.T) {
	r := newRig(t)
	old := r.replica(3, tp, 3, 0) // it led once
	r.produce(old, "a", "b", "c", "lost", "lost too")
	lead := r.replica(1, tp, 1, 0)
	r.produce(lead, "a", "b", "c")
	r.assign(lead, 1, 2)
	r.produce(lead, "d")

	r.assign(old, 1, 2)
	r.manager.Follow(tp, topicID, old)
	r.same(lead, old)
	if r.starts != 0 {
		t.Error("it started over, where a cut was enough")
	}
	if got := old.Log().EpochAt(3); got != 2 {
		t.Errorf("epoch of the leader's record: %d", got)
	}
}

// TestStartOver: a leader that has trimmed what the follower needs next makes it begin where the leader begins.
func TestStartOver(t *testing.T) {
	r := newRig(t)
	lead, follower := r.replica(1, tp, 1, 0), r.replica(3, tp, 1, 0)
	r.produce(lead, "a", "b", "c", "d", "e")
	if err := lead.Log().TrimTo(3); err != nil {
		t.Fatal(err)
	}
	lead.Advance()
	r.manager.Follow(tp, topicID, follower)
	r.same(lead, follower)
	if e := follower.Log().Ends(); e.Start != 3 {
		t.Errorf("log %+v", e)
	}
}

// TestTrim: a follower's log start follows its leader's.
func TestTrim(t *testing.T) {
	r := newRig(t)
	lead, follower := r.replica(1, tp, 1, 0), r.replica(3, tp, 1, 0)
	r.produce(lead, "a", "b", "c")
	r.manager.Follow(tp, topicID, follower)
	r.same(lead, follower)
	if err := lead.Log().TrimTo(2); err != nil {
		t.Fatal(err)
	}
	lead.Advance()
	r.same(lead, follower)
}

func TestUnreachableLeader(t *testing.T) {
	r := newRig(t)
	r.set(func() { r.away[1] = true })
	lead, follower := r.replica(1, tp, 1, 0), r.replica(3, tp, 1, 0)
	other := store.TP{Topic: "other"}
	lead2, follower2 := r.replica(2, other, 2, 0), r.replica(3, other, 2, 0)
	r.produce(lead, "a")
	r.produce(lead2, "a")
	r.manager.Follow(tp, topicID, follower)
	r.manager.Follow(other, topicID, follower2)
	r.same(lead2, follower2) // another leader's partitions go on
	r.eventually("it is tried again", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.asked[1] > 3
	})
	r.set(func() { r.away[1] = false })
	r.same(lead, follower)
}

// TestLeaderChange: from the moment at which the controller names another leader, the former one is not believed, even
// while its fetch is under way.
func TestLeaderChange(t *testing.T) {
	r := newRig(t)
	lead, follower := r.replica(1, tp, 1, 0), r.replica(3, tp, 1, 0)
	r.produce(lead, "a")
	r.manager.Follow(tp, topicID, follower)
	r.same(lead, follower)
	next := r.replica(2, tp, 2, 1)
	r.produce(next, "a", "b")
	r.produce(lead, "never")
	r.assign(follower, 2, 1)
	r.manager.Follow(tp, topicID, follower)
	r.same(next, follower)

	r.set(func() { r.asked[1] = 0 })
	r.produce(next, "c")
	r.same(next, follower)
	if all, _ := r.manager.Count(); all != 1 {
		t.Errorf("%d followed", all)
	}
}

// TestPartitionRests: one that its leader does not know, or whose answer is no records, rests alone.
func TestPartitionRests(t *testing.T) {
	r := newRig(t)
	lead, follower := r.replica(1, tp, 1, 0), r.replica(3, tp, 1, 0)
	unknown := store.TP{Topic: "t", Partition: 2} // of the same lane
	r.manager.Follow(unknown, topicID, r.replica(3, unknown, 1, 0))
	r.manager.Follow(tp, topicID, follower)
	r.produce(lead, "a")
	r.same(lead, follower)
	spoilt := 0
	r.set(func() {
		r.answered = func(g *Given) {
			for i := range g.Records {
				g.Records[i] ^= 0x5a
			}
			if len(g.Records) > 0 {
				r.set(func() { spoilt++ })
			}
		}
	})
	r.produce(lead, "b")
	r.eventually("records that are none are asked for again and again", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return spoilt > 3
	})
	if e := follower.Log().Ends(); e.Written != 1 {
		t.Errorf("something was appended: %+v", e)
	}
	r.set(func() { r.answered = nil })
	r.same(lead, follower)
}

func TestLeave(t *testing.T) {
	r := newRig(t)
	lead, follower := r.replica(1, tp, 1, 0), r.replica(3, tp, 1, 0)
	r.manager.Follow(tp, topicID, follower)
	r.produce(lead, "a")
	r.same(lead, follower)
	r.manager.Leave(tp)
	r.manager.Leave(tp)
	if all, _ := r.manager.Count(); all != 0 {
		t.Errorf("%d followed", all)
	}
	follower.Stop()
	r.manager.Follow(tp, topicID, follower) // it follows nobody any more
	if all, _ := r.manager.Count(); all != 0 {
		t.Errorf("%d followed after its end", all)
	}
}

// TestClose: an end does not wait for a leader that does not answer, and hangs up.
func TestClose(t *testing.T) {
	r := newRig(t)
	r.set(func() { r.hang = true })
	r.replica(1, tp, 1, 0)
	follower := r.replica(3, tp, 1, 0)
	r.manager.Follow(tp, topicID, follower)
	r.eventually("a fetch hangs", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.hanging > 0
	})
	r.manager.Close()
	if r.hungUp[1] == 0 {
		t.Error("the lane is open")
	}
	r.manager.Follow(tp, topicID, follower)
	if all, _ := r.manager.Count(); all != 0 {
		t.Errorf("%d followed after the end", all)
	}
	r.manager.Close()
}
