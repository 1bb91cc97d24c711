package controller

import (
	"context"
	"errors"
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
