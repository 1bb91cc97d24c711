package controller

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/internal/coordtest"
	"platter/coord/zkclient"
	"platter/engine/store"
)

// failing loses the requests for listings, so many of them.
type failing struct {
	*zkclient.Client
	left atomic.Int32
}

func (f *failing) Children(ctx context.Context, path string, watch func(zkclient.Event)) ([]string, zkclient.Stat, error) {
	if f.left.Add(-1) >= 0 {
		return nil, zkclient.Stat{}, zkclient.ErrConnectionLoss
	}
	return f.Client.Children(ctx, path, watch)
}

// register makes brokers' znodes, of one session.
func register(t *testing.T, zk *zkclient.Client, ids ...int32) {
	t.Helper()
	_, err := cluster.EnsureLayout(t.Context(), zk)
	coordtest.Must(t, err)
	for _, id := range ids {
		_, err := zk.Create(t.Context(), cluster.BrokerPath(id), cluster.EncodeBroker(cluster.Broker{ID: id}, 0), zkclient.Ephemeral)
		coordtest.Must(t, err)
	}
}

// TestRereadFails: what only the controller knows outlives tries to read everything that fail.
func TestRereadFails(t *testing.T) {
	c := startCoordinator(t)
	ctx := t.Context()
	f := &failing{Client: c.Client()}
	register(t, f.Client, 1, 2)
	b := newBrokers()
	ctl := New(Config{BrokerID: 1, Brokers: b, Clock: hasty{}, Log: quiet})
	defer ctl.Stop()
	coordtest.Must(t, ctl.Session(ctx, f))
	created := ctl.CreateTopics(ctx, []NewTopic{{Name: "t", Assignment: [][]int32{{1, 2}}, PartitionCount: -1, ReplicationFactor: -1}})[0]
	coordtest.Must(t, created.Err)
	_, err := ctl.ControlledShutdown(ctx, 2, -1)
	coordtest.Must(t, err)

	f.left.Store(3)
	ctl.Reread()
	coordtest.Eventually(t, "everything is read", func() bool { return f.left.Load() < 0 && ctl.Active() })
	p := b.look().Topic("t").Partitions[0]
	if len(p.ISR) != 1 {
		t.Fatalf("a broker that shuts down is in sync: %+v", p)
	}
	self, err := cluster.ReadBrokers(ctx, f.Client, []string{"1"})
	coordtest.Must(t, err)
	wish := ISRChange{TP: store.TP{Topic: "t"}, TopicID: created.ID, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.ZkVersion, ISR: []ISRMember{{1, -1}, {2, -1}}}
	answers, err := ctl.AlterPartition(ctx, 1, self[0].Epoch, []ISRChange{wish})
	coordtest.Must(t, err)
	if !errors.Is(answers[0].Err, ErrIneligible) {
		t.Errorf("a broker that shuts down may come back in sync: %v", answers[0].Err)
	}
}

// overtaken has something happen just before a write is done, whose answer is lost.
type overtaken struct {
	*zkclient.Client
	by atomic.Pointer[func()]
}

func (o *overtaken) Multi(ctx context.Context, ops ...zkclient.Op) ([]zkclient.Result, error) {
	by := o.by.Swap(nil)
	if by != nil {
		(*by)()
	}
	results, err := o.Client.Multi(ctx, ops...)
	if by != nil && err == nil {
		return nil, zkclient.ErrConnectionLoss
	}
	return results, err
}

// TestBounceBeforeAWrite: a broker registers anew just before a state is written that counts its former life in sync. It is
// out of the set, also for a controller that knows only what is written down.
func TestBounceBeforeAWrite(t *testing.T) {
	c := startCoordinator(t)
	ctx := t.Context()
	o := &overtaken{Client: c.Client()}
	register(t, o.Client, 1, 2, 3)
	b := newBrokers()
	ctl := New(Config{BrokerID: 1, Brokers: b, Clock: hasty{}, Log: quiet})
	defer ctl.Stop()
	coordtest.Must(t, ctl.Session(ctx, o))
	created := ctl.CreateTopics(ctx, []NewTopic{{Name: "t", Assignment: [][]int32{{1, 2, 3}}, PartitionCount: -1, ReplicationFactor: -1}})[0]
	coordtest.Must(t, created.Err)
	self, err := cluster.ReadBrokers(ctx, o.Client, []string{"1"})
	coordtest.Must(t, err)

	bounce := func() {
		if err := o.Delete(ctx, cluster.BrokerPath(2), -1); err != nil {
			t.Error(err)
		}
		if _, err := o.Create(ctx, cluster.BrokerPath(2), cluster.EncodeBroker(cluster.Broker{ID: 2}, 0), zkclient.Ephemeral); err != nil {
			t.Error(err)
		}
	}
	o.by.Store(&bounce)
	wish := ISRChange{TP: store.TP{Topic: "t"}, TopicID: created.ID, ISR: []ISRMember{{1, -1}, {2, -1}}}
	if _, err := ctl.AlterPartition(ctx, 1, self[0].Epoch, []ISRChange{wish}); err == nil {
		t.Error("an answer that was lost has arrived")
	}
	coordtest.Eventually(t, "the broker that left is out of the set, in a new epoch", func() bool {
		p := b.look().Topic("t").Partitions[0]
		return p.Leader == 1 && slices.Equal(p.ISR, []int32{1}) && p.LeaderEpoch == 1
	})
}

// TestSessionEndsInElection: who waits for the election of a session that ends meanwhile hears of that.
func TestSessionEndsInElection(t *testing.T) {
	c := startCoordinator(t)
	zk := c.Client()
	register(t, zk, 1)
	ctl := New(Config{BrokerID: 1, Brokers: newBrokers(), Clock: hasty{}, Log: quiet})
	defer ctl.Stop()
	coordtest.Must(t, zk.Close())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ctl.Session(ctx, zk); !errors.Is(err, zkclient.ErrClosed) {
		t.Fatalf("session: %v", err)
	}
	next := c.Client()
	register(t, next, 1)
	coordtest.Must(t, ctl.Session(ctx, next))
	if !ctl.Active() {
		t.Error("the next session is not used")
	}
}
