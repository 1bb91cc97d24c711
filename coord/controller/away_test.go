package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"platter/coord/cluster"
	"platter/coord/internal/coordtest"
)

// apart are brokers of which each remembers what it was told; the one that is away is not reached.
type apart struct {
	away atomic.Int32
	by   map[int32]*brokers
	full map[int32]*atomic.Int32 // how often it was told everything
}

func newApart(ids ...int32) *apart {
	a := &apart{by: map[int32]*brokers{}, full: map[int32]*atomic.Int32{}}
	for _, id := range ids {
		a.by[id], a.full[id] = newBrokers(), &atomic.Int32{}
	}
	return a
}

func (a *apart) reach(to cluster.Broker) error {
	if a.away.Load() == to.ID {
		return errors.New("connection refused")
	}
	return nil
}

func (a *apart) LeaderAndISR(ctx context.Context, to cluster.Broker, r LeaderAndISR) ([]error, error) {
	if err := a.reach(to); err != nil {
		return nil, err
	}
	return a.by[to.ID].LeaderAndISR(ctx, to, r)
}

func (a *apart) StopReplica(ctx context.Context, to cluster.Broker, r StopReplica) ([]error, error) {
	if err := a.reach(to); err != nil {
		return nil, err
	}
	return a.by[to.ID].StopReplica(ctx, to, r)
}

func (a *apart) UpdateMetadata(ctx context.Context, to cluster.Broker, r UpdateMetadata) error {
	if err := a.reach(to); err != nil {
		return err
	}
	if r.Update.Full {
		a.full[to.ID].Add(1)
	}
	return a.by[to.ID].UpdateMetadata(ctx, to, r)
}

// TestBrokerAway: a broker that is registered and cannot be reached costs the others nothing, however much changes and
// however long its deletions wait; when it is back it is told everything, and drops what was deleted.
func TestBrokerAway(t *testing.T) {
	c := startCoordinator(t)
	ctx := t.Context()
	zk := c.Client()
	register(t, zk, 1, 2)
	a := newApart(1, 2)
	ctl := New(Config{BrokerID: 1, Brokers: a, Clock: hasty{}, Log: quiet})
	defer ctl.Stop()
	coordtest.Must(t, ctl.Session(ctx, zk))
	create := func(name string, replicas ...int32) {
		t.Helper()
		coordtest.Must(t, ctl.CreateTopics(ctx, []NewTopic{{Name: name, PartitionCount: -1, ReplicationFactor: -1, Assignment: [][]int32{replicas}}})[0].Err)
	}
	create("gone", 1, 2)
	a.away.Store(2)
	before := a.full[1].Load()
	coordtest.Must(t, ctl.DeleteTopics(ctx, []string{"gone"})[0])
	for i := range sendQueueMax + 40 {
		create(fmt.Sprint("t", i), 1)
	}
	create("new", 2)
	if _, waiting := ctl.Waiting(); waiting > sendQueueMax {
		t.Errorf("%d messages wait", waiting)
	}
	if told := a.full[1].Load() - before; told != 0 {
		t.Errorf("the other broker was told everything, %d times", told)
	}
	back := a.full[2].Load()
	a.away.Store(0)
	coordtest.Eventually(t, "the broker knows all, and the deletion is done", func() bool {
		names, _, err := zk.Children(ctx, cluster.DeleteTopicsPath, nil)
		img := a.by[2].look()
		return err == nil && len(names) == 0 && len(img.Topics) == sendQueueMax+41 && img.Topic("new") != nil && img.Topic("gone") == nil
	})
	if a.full[2].Load() == back {
		t.Error("the broker was not told everything")
	}
	if told := a.full[1].Load() - before; told != 0 {
		t.Errorf("the other broker was told everything, %d times", told)
	}
	a.by[2].mu.Lock()
	defer a.by[2].mu.Unlock()
	if len(a.by[2].stopped) == 0 {
		t.Error("the replica was not deleted")
	}
}
