package node

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/internal/coordtest"
	"platter/coord/realzk"
	"platter/coord/zkclient"
	"platter/engine/store"
	"platter/io/memdisk"
)

func TestMain(m *testing.M) { realzk.Main(m) }

// TestApacheZooKeeper: the same life over Apache ZooKeeper, in a chroot: create, write, kill, start, a topic
// whose znodes take several multis, and its deletion.
func TestApacheZooKeeper(t *testing.T) {
	addr := realzk.Addr(t)
	m := &machine{t: t, disk: memdisk.New(memdisk.Options{}), cfg: testConfig()}
	// A busy machine must not cost the connection: the server may be silent for long.
	m.cfg.SessionTimeout, m.cfg.ConnectTimeout = realzk.MaxSessionMs*time.Millisecond, 90*time.Second
	m.cfg.Log = slog.New(slog.NewTextHandler(&m.logs, nil))
	m.cfg.FS, m.cfg.Servers, m.cfg.Chroot = m.disk, []string{addr}, "/deep/"+cluster.NewUUID().String()
	m.mustStart()
	m.create("t", 3)
	tp := store.TP{Topic: "t", Partition: 1}
	m.produce(tp)
	m.kill()
	m.mustStart()
	m.neverWaited()
	if a := m.produce(tp); a.BaseOffset != 1 {
		t.Errorf("record at %d", a.BaseOffset)
	}
	if p := m.node.Image().Topic("t").Partitions[1]; p.LeaderEpoch != 1 {
		t.Errorf("partition: %+v", p)
	}
	if id, err := m.node.ProducerIDs().Next(t.Context()); id != 0 || err != nil {
		t.Errorf("producer id %d, %v", id, err)
	}
	m.create("big", 3000) // more than one multi
	// A busy machine takes longer than a client waits; the topic is marked then, and goes all the same.
	if err := m.node.Controller().DeleteTopics(t.Context(), []string{"big"})[0]; !errors.Is(err, controller.ErrTimeout) {
		coordtest.Must(t, err)
	}
	eventually(t, "the topic is gone", func() bool {
		_, _, err := m.node.zk.Load().Get(t.Context(), cluster.TopicPath("big"), nil)
		return errors.Is(err, zkclient.ErrNoNode)
	})
	m.stop()

	zk, err := zkclient.Connect(t.Context(), zkclient.Config{Servers: m.cfg.Servers, Chroot: m.cfg.Chroot, SessionTimeout: coordtest.SessionTimeout})
	coordtest.Must(t, err)
	defer zk.Close()
	topics, _, err := zk.Children(t.Context(), cluster.TopicsPath, nil)
	if err != nil || len(topics) != 1 || topics[0] != "t" {
		t.Errorf("topics left: %v, %v", topics, err)
	}
	brokers, _, err := zk.Children(t.Context(), cluster.BrokerIDsPath, nil)
	if err != nil || len(brokers) != 0 {
		t.Errorf("brokers left: %v, %v", brokers, err)
	}
}

// TestApacheZooKeeperExpiry: the session expires at the server while the broker lives.
func TestApacheZooKeeperExpiry(t *testing.T) {
	addr := realzk.Addr(t)
	m := &machine{t: t, disk: memdisk.New(memdisk.Options{}), cfg: testConfig()}
	m.cfg.FS, m.cfg.Servers, m.cfg.Chroot = m.disk, []string{addr}, "/"+cluster.NewUUID().String()
	m.mustStart()
	defer m.stop()
	m.create("t", 1)
	first := m.node.epoch.Load()
	m.endSession()
	coordtest.Eventually(t, "the broker is registered anew and leads again", func() bool {
		return m.node.epoch.Load() > first && m.node.Image().Topic("t").Partitions[0].LeaderEpoch == 1
	})
	out := m.node.Controller().CreateTopics(t.Context(), []controller.NewTopic{{Name: "u", PartitionCount: 1, ReplicationFactor: 1}})
	coordtest.Must(t, out[0].Err)
}
