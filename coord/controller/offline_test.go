package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/internal/coordtest"
	"platter/coord/zkclient"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/disk"
)

// TestOfflineReplica: a replica that its broker cannot serve has no leader, and gets one again when the
// broker registers anew.
func TestOfflineReplica(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	ctl, zk := join(t, c, 1, b)
	ctl.CreateTopics(t.Context(), []NewTopic{{Name: "t", PartitionCount: 2, ReplicationFactor: 1}})
	b.mu.Lock()
	b.refuse[store.TP{Topic: "t", Partition: 1}] = errors.New("disk on fire")
	b.mu.Unlock()
	_, err := zk.Create(t.Context(), cluster.LogDirEventSequencePath(), cluster.EncodeLogDirEvent(1), zkclient.PersistentSequential)
	coordtest.Must(t, err)
	coordtest.Eventually(t, "the partition has no leader", func() bool {
		p := b.look().Topic("t").Partitions[1]
		return p.Leader == -1 && slices.Equal(p.ISR, []int32{1}) && slices.Equal(p.OfflineReplicas, []int32{1})
	})
	if p := b.look().Topic("t").Partitions[0]; p.Leader != 1 {
		t.Fatalf("the other partition: %+v", p)
	}
}

// swift fires timers long before their time.
type swift struct{ clock.Real }

func (c swift) AfterFunc(d time.Duration, f func()) func() bool { return c.Real.AfterFunc(d/100, f) }

// TestReplicaComesBack: what kept a broker from serving a partition may pass; it is asked again, and leads again.
func TestReplicaComesBack(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	zk := c.Client()
	register(t, zk, 1)
	ctl := New(Config{BrokerID: 1, Brokers: b, Clock: swift{}, Log: quiet})
	defer ctl.Stop()
	coordtest.Must(t, ctl.Session(t.Context(), zk))
	full := store.TP{Topic: "t", Partition: 1}
	b.mu.Lock()
	b.refuse[full] = disk.ErrFull
	b.mu.Unlock()
	ctl.CreateTopics(t.Context(), []NewTopic{{Name: "t", PartitionCount: 2, ReplicationFactor: 1}})
	led := func() bool { return b.look().Topic("t").Partitions[1].Leader == 1 }
	coordtest.Eventually(t, "the partition has no leader", func() bool { return !led() })
	for _, reread := range []bool{false, true} {
		if reread { // what is known survives it, and so does the next question
			ctl.Reread()
		}
		before := b.asked(full)
		coordtest.Eventually(t, "it is asked again", func() bool { return b.asked(full) > before+1 })
	}
	if led() {
		t.Error("a partition is led that its broker cannot serve")
	}
	b.mu.Lock()
	delete(b.refuse, full)
	b.mu.Unlock()
	coordtest.Eventually(t, "the partition is led again", func() bool {
		return led() && b.look().Topic("t").Partitions[1].OfflineReplicas == nil
	})
}
