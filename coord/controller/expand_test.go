package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/engine/store"
)

// TestGrow: new partitions go on where the topic's own end, on the ring of brokers.
func TestGrow(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	ctl, zk := join(t, c, 1, b)
	for _, id := range []int32{2, 3} {
		self := cluster.Broker{ID: id, Endpoints: []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 9092}}}
		if _, err := zk.Create(t.Context(), cluster.BrokerPath(id), cluster.EncodeBroker(self, 0), zkclient.Ephemeral); err != nil {
			t.Fatal(err)
		}
	}
	for len(b.look().Brokers) < 3 { // the test's own limit ends a controller that never hears of them
		time.Sleep(time.Millisecond)
	}
	made := ctl.CreateTopics(t.Context(), []NewTopic{{Name: "t", PartitionCount: -1, ReplicationFactor: -1, Assignment: [][]int32{{2, 3}, {3, 1}}}})
	if made[0].Err != nil {
		t.Fatal(made[0].Err)
	}
	errs := ctl.CreatePartitions(t.Context(), []MorePartitions{
		{Topic: "t", Count: 5},
		{Topic: "t", Count: 5},
		{Topic: "t", Count: 6, Assignment: [][]int32{{3}}},
		{Topic: "t", Count: 6, Assignment: [][]int32{{3, 2}}},
		{Topic: "nowhere", Count: 6},
	})
	for i, want := range []error{nil, ErrInvalidPartitions, ErrInvalidAssignment, nil, ErrUnknownTopic} {
		if !errors.Is(errs[i], want) {
			t.Errorf("%d: %v, want %v", i, errs[i], want)
		}
	}
	var got string
	for _, p := range b.look().Topics["t"].Partitions {
		got += fmt.Sprintf("%d:%v ", p.Leader, p.Replicas)
	}
	if want := "2:[2 3] 3:[3 1] 1:[1 2] 2:[2 3] 3:[3 1] 3:[3 2] "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p, _, err := zk.Get(t.Context(), cluster.TopicPath("t"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := cluster.DecodeAssignment(p); err != nil || len(a.Replicas) != 6 || a.ID != made[0].ID {
		t.Errorf("the znode says %s (%v)", p, err)
	}
}

// TestAskedElections: the preferred replica leads when it is asked for and in sync.
func TestAskedElections(t *testing.T) {
	core := newCore()
	core.setBrokers([]cluster.Broker{{ID: 1, Epoch: 1}, {ID: 2, Epoch: 1}})
	topic := core.setTopic("t", cluster.Assignment{Replicas: [][]int32{{1, 2}, {1, 2}, {3, 1}, {3}, {1}}}, false)
	for i, s := range []cluster.State{
		{Leader: 2, ISR: []int32{2, 1}}, {Leader: 1, ISR: []int32{1}}, {Leader: 1, ISR: []int32{1}},
		{Leader: -1, ISR: []int32{3}}, {Leader: -1, ISR: []int32{3}},
	} {
		s.Known = 2
		core.setState(topic, i, s)
	}
	for _, c := range []struct {
		partition int32
		unclean   bool
		leader    int32
		err       error
	}{
		{0, false, 1, nil},
		{0, true, 0, ErrElectionNotNeeded},
		{1, false, 0, ErrElectionNotNeeded},
		{2, false, 0, ErrPreferredAway},
		{3, true, 0, ErrNoEligibleLeader},
		{4, true, 1, nil},
		{9, false, 0, ErrUnknownTopic},
	} {
		s, err := core.electAsked(store.TP{Topic: "t", Partition: c.partition}, c.unclean)
		if !errors.Is(err, c.err) || err == nil && (s.Leader != c.leader || s.LeaderEpoch != 1) {
			t.Errorf("%+v: leader %d, epoch %d, %v", c, s.Leader, s.LeaderEpoch, err)
		}
	}
}
