package cluster

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/tools/history"
	"platter/tools/killtest"
	"platter/tools/proc"
)

// TestLostDisk: a broker comes back with nothing on its disk, and gets all of it again while producers keep going.
func TestLostDisk(t *testing.T) {
	s := newScene(t, proc.Binary(t), proc.Random(t, *seed), nil)
	load := s.load(0)
	s.await(load, 20_000)
	b := s.victim()
	b.Kill()
	s.await(load, 1000)
	if err := os.RemoveAll(b.Props["log.dirs"]); err != nil {
		t.Fatal(err)
	}
	b.Start()
	s.await(load, 1000) // it fills up meanwhile
	slow := s.load(300) // a load that does not end, but lets it catch up
	if err := load.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.c.AwaitWhole(s.adm, topic)
	s.await(slow, 100)
	if err := slow.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, b := range s.c.Brokers {
		b.Stop()
	}
	if err := s.c.SameBytes(topic, partitions); err != nil {
		t.Error(err)
	}
}

// TestFourthBroker: a broker is added under load, with nothing changed on the others. It gets replicas of new topics,
// and clients that know the first three only find it by metadata.
func TestFourthBroker(t *testing.T) {
	s := newScene(t, proc.Binary(t), proc.Random(t, *seed), nil)
	old := s.c.Bootstrap()
	load := s.load(300)
	s.await(load, 100)
	const name, count = "wider", 8
	s.c.Add(proc.Binary(t), s.coordinator.Addr(), map[string]string{"min.insync.replicas": "2"}).Start()
	s.await(load, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if _, err := s.adm.CreateTopic(ctx, count, 3, nil, name); err != nil {
		t.Fatal(err)
	}
	s.c.AwaitWhole(s.adm, name)
	ps, err := Partitions(ctx, s.adm, name)
	if err != nil {
		t.Fatal(err)
	}
	leads := func(p kadm.PartitionDetail) bool { return p.Leader == 3 }
	has := func(p kadm.PartitionDetail) bool { return slices.Contains(p.Replicas, 3) }
	if !slices.ContainsFunc(ps, leads) || !slices.ContainsFunc(ps, has) {
		t.Errorf("the new broker has no part in a new topic: %+v", ps)
	}
	wide, err := killtest.Plan{Addr: old, Topic: name, Partitions: count, Producers: 1, Seed: 1, PerSecond: 300}.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Abandon()
	s.await(wide, 200)
	if err := wide.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	read, err := killtest.ReadAll(ctx, old, name)
	if err != nil {
		t.Fatal(err)
	}
	for p := range int32(count) {
		if !slices.ContainsFunc(read, func(r history.Record) bool { return r.Partition == p }) {
			t.Errorf("partition %d of the new topic has no record", p)
		}
	}
	s.clean(s.verdict(load, nil, false))
	if err := s.c.SameBytes(name, count); err != nil {
		t.Error(err)
	}
}

// TestRollingRestart restarts all brokers one after the other, as an upgrade does. A broker that stops has given its
// leaderships away before it leaves, and no client sees an error.
func TestRollingRestart(t *testing.T) {
	s := newScene(t, proc.Binary(t), proc.Random(t, *seed), map[string]string{"leader.imbalance.check.interval.seconds": "1"})
	load := s.load(300)
	groups := StartGroups(t, s.c.Bootstrap(), s.coordinator.Addr(), topic, map[string]int{"rolled": 2})
	defer groups.Stop()
	groups.AwaitWork()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	zk, err := zkclient.Connect(ctx, zkclient.Config{Servers: []string{s.coordinator.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	for id, b := range s.c.Brokers {
		s.c.AwaitWhole(s.adm, topic)
		// Nobody is offline, so the preferred leaders lead: each broker has something to give away.
		s.c.Await(s.adm, topic, "the broker leads something", func(ps []kadm.PartitionDetail) bool {
			return slices.ContainsFunc(ps, func(p kadm.PartitionDetail) bool { return p.Leader == int32(id) })
		})
		s.await(load, 50)
		b.Stop()
		_, left, err := zk.Children(ctx, cluster.BrokerIDsPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		for p := range int32(partitions) {
			data, stat, err := zk.Get(ctx, cluster.StatePath(topic, p), nil)
			if err != nil {
				t.Fatal(err)
			}
			state, err := cluster.DecodeState(data)
			if err != nil {
				t.Fatal(err)
			}
			// The directory's last change was that the broker's registration went.
			if state.Leader == int32(id) || slices.Contains(state.ISR, int32(id)) || stat.Mzxid > left.Pzxid {
				t.Errorf("broker %d has left at %d; of partition %d it says at %d: %+v", id, left.Pzxid, p, stat.Mzxid, state)
			}
		}
		s.await(load, 50)
		b.Start()
	}
	s.clean(s.verdict(load, groups, false))
}
