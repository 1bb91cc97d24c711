package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/tools/proc"
)

// corners is a cluster in which an administrator changes things while brokers are away.
type corners struct {
	*testing.T
	c   *Cluster
	adm *kadm.Client
	cl  *kgo.Client
}

// TestAdministrationWhileBrokersAreAway: what is changed while a broker, or the controller, is down is so afterwards, everywhere.
func TestAdministrationWhileBrokersAreAway(t *testing.T) {
	bin := proc.Binary(t)
	k := &corners{T: t, c: New(t, bin, 3, StartCoordinator(t, bin).Addr(), nil)}
	k.c.Start()
	k.adm = k.c.Admin()
	var err error
	k.cl, err = kgo.NewClient(kgo.SeedBrokers(strings.Split(k.c.Bootstrap(), ",")...), kgo.MetadataMinAge(20*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DialTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.cl.Close)
	for _, corner := range []struct {
		name string
		do   func(*corners)
	}{
		{"assignments that are given", (*corners).assignments},
		{"min.insync.replicas is changed", (*corners).minISR},
		{"a topic is deleted and made again", (*corners).deletion},
		{"a topic grows", (*corners).growth},
		{"an unclean election is asked for", (*corners).uncleanAsked},
		{"the controller dies", (*corners).failover},
	} {
		t.Run(corner.name, func(t *testing.T) {
			k.T = t
			corner.do(k)
		})
	}
}

func (k *corners) ctx() context.Context {
	ctx, cancel := context.WithTimeout(k.Context(), 90*time.Second)
	k.Cleanup(cancel)
	return ctx
}

// eventually tries until it succeeds: brokers may be about to hear of what has changed.
func (k *corners) eventually(what string, try func() error) {
	k.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	k.Fatalf("not in 90 s: %s: %v", what, err)
}

// create makes a topic with the replicas that are given, by partition.
func (k *corners) create(topic string, replicas ...[]int32) {
	k.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, -1, -1
	for p, ids := range replicas {
		t.ReplicaAssignment = append(t.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(p), Replicas: ids})
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
	k.eventually("creating "+topic, func() error {
		resp, err := req.RequestWith(k.ctx(), k.cl)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); !errors.Is(err, kerr.TopicAlreadyExists) { // by a try before
			return err
		}
		return nil
	})
}

func (k *corners) produce(topic string, partition int32, value string) error {
	ctx, cancel := context.WithTimeout(k.Context(), 60*time.Second)
	defer cancel()
	return k.cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}).FirstErr()
}

func (k *corners) set(topic, name, value string) {
	k.Helper()
	k.eventually("setting "+name, func() error {
		got, err := k.adm.AlterTopicConfigs(k.ctx(), []kadm.AlterConfig{{Name: name, Value: &value}}, topic)
		if err != nil {
			return err
		}
		return got[0].Err
	})
}

// assignments: replicas are where they were asked to be, the first leads, and what cannot be is refused.
func (k *corners) assignments() {
	want := [][]int32{{2, 0}, {1, 2}, {0, 1}}
	k.create("given", want...)
	k.c.Await(k.adm, "given", "replicas are as given", func(ps []kadm.PartitionDetail) bool {
		ok := len(ps) == len(want)
		for i, p := range ps {
			ok = ok && slices.Equal(p.Replicas, want[i]) && p.Leader == want[i][0] && len(p.ISR) == len(want[i])
		}
		return ok
	})
	more := kmsg.NewPtrCreatePartitionsRequest()
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = "given", 4
	t.Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: []int32{1, 0}}}
	more.Topics, more.TimeoutMillis = append(more.Topics, t), 30_000
	resp, err := more.RequestWith(k.ctx(), k.cl)
	if err != nil || resp.Topics[0].ErrorCode != 0 {
		k.Fatalf("growing: %v, %+v", err, resp)
	}
	k.c.Await(k.adm, "given", "the new partition is where it was asked to be", func(ps []kadm.PartitionDetail) bool {
		return len(ps) == 4 && slices.Equal(ps[3].Replicas, []int32{1, 0}) && ps[3].Leader == 1
	})
	for _, bad := range [][]int32{{0, 0}, {7, 1}, {}} {
		req := kmsg.NewPtrCreateTopicsRequest()
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = "bad", -1, -1
		t.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: bad}}
		req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
		resp, err := req.RequestWith(k.ctx(), k.cl)
		if err != nil || !errors.Is(kerr.ErrorForCode(resp.Topics[0].ErrorCode), kerr.InvalidReplicaAssignment) {
			k.Errorf("replicas %v: %v, %+v", bad, err, resp)
		}
	}
}

// minISR: with a follower away, acks=all is granted or refused as min.insync.replicas says now.
func (k *corners) minISR() {
	k.create("strict", []int32{0, 1})
	k.c.Brokers[1].Kill()
	k.c.Await(k.adm, "strict", "the leader is alone", func(ps []kadm.PartitionDetail) bool {
		return len(ps) == 1 && ps[0].Leader == 0 && len(ps[0].ISR) == 1
	})
	one, err := kgo.NewClient(kgo.SeedBrokers(k.c.Brokers[0].Addr()), kgo.RecordRetries(0), kgo.DisableIdempotentWrite(),
		kgo.DefaultProduceTopic("strict"), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		k.Fatal(err)
	}
	defer one.Close()
	for range 3 {
		k.set("strict", "min.insync.replicas", "2")
		k.eventually("acks=all is refused", func() error {
			if err := one.ProduceSync(k.ctx(), kgo.StringRecord("v")).FirstErr(); !errors.Is(err, kerr.NotEnoughReplicas) {
				return fmt.Errorf("the outcome is %v", err)
			}
			return nil
		})
		k.set("strict", "min.insync.replicas", "1")
		k.eventually("acks=all is granted", func() error { return one.ProduceSync(k.ctx(), kgo.StringRecord("v")).FirstErr() })
	}
	k.c.Brokers[1].Start()
	k.c.AwaitWhole(k.adm, "strict")
}

// deletion: a topic of which a replica is on a broker that is away is unknown at once, and gone with its data when the
// broker is back; a topic that has its name afterwards has none of its records.
func (k *corners) deletion() {
	k.create("again", []int32{0, 1, 2})
	if err := k.produce("again", 0, "old"); err != nil {
		k.Fatal(err)
	}
	away := k.c.Brokers[2]
	away.Kill()
	k.c.Await(k.adm, "again", "it has lost a replica", func(ps []kadm.PartitionDetail) bool { return len(ps) == 1 && len(ps[0].ISR) == 2 })
	resp, err := k.adm.DeleteTopics(k.ctx(), "again")
	if r := resp["again"]; err != nil || r.Err != nil && !errors.Is(r.Err, kerr.RequestTimedOut) {
		k.Fatalf("deleting: %v, %v", err, r.Err)
	}
	k.eventually("it is unknown", func() error {
		if got, err := k.adm.ListTopics(k.ctx(), "again"); err != nil || !errors.Is(got["again"].Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("%v, %v", got["again"].Err, err)
		}
		return nil
	})
	away.Start()
	k.eventually("it can be made again", func() error {
		_, err := k.adm.CreateTopic(k.ctx(), 1, 3, nil, "again")
		return err
	})
	k.c.AwaitWhole(k.adm, "again")
	k.cl.PurgeTopicsFromClient("again") // it would go on asking for the topic that had this name
	k.eventually("a record is taken", func() error { return k.produce("again", 0, "new") })
	k.eventually("all replicas have just the new record", func() error {
		for i, b := range k.c.Brokers {
			data, err := logBytes(filepath.Join(b.Props["log.dirs"], "again-0"))
			if err != nil || !strings.Contains(string(data), "new") || strings.Contains(string(data), "old") {
				return fmt.Errorf("broker %d has %q, %v", i, data, err)
			}
		}
		return nil
	})
}

// growth: partitions that come while a broker is away are led at once, and it takes its part when it is back.
func (k *corners) growth() {
	k.create("grows", []int32{0, 1})
	k.c.AwaitWhole(k.adm, "grows")
	k.c.Brokers[1].Kill()
	k.c.Await(k.adm, "grows", "it has lost a replica", func(ps []kadm.PartitionDetail) bool { return len(ps) == 1 && len(ps[0].ISR) == 1 })
	k.eventually("two partitions more", func() error {
		got, err := k.adm.UpdatePartitions(k.ctx(), 3, "grows")
		if err != nil {
			return err
		}
		if err := got["grows"].Err; err != nil && !errors.Is(err, kerr.InvalidPartitions) { // of a try before: there already
			return err
		}
		return nil
	})
	for p := range int32(3) {
		k.eventually("a record is taken", func() error { return k.produce("grows", p, "v") })
	}
	k.c.Brokers[1].Start()
	k.c.AwaitWhole(k.adm, "grows")
	k.c.Await(k.adm, "grows", "there are three", func(ps []kadm.PartitionDetail) bool { return len(ps) == 3 })
}

// uncleanAsked: kadm's (and Java's) election of any replica that lives, where the last in-sync one does not.
func (k *corners) uncleanAsked() {
	k.create("forced", []int32{1, 2})
	if err := k.produce("forced", 0, "v"); err != nil {
		k.Fatal(err)
	}
	k.c.Brokers[2].Kill()
	k.c.Await(k.adm, "forced", "the leader is alone", func(ps []kadm.PartitionDetail) bool { return len(ps) == 1 && len(ps[0].ISR) == 1 })
	k.c.Brokers[1].Kill()
	k.c.Brokers[2].Start()
	k.c.Await(k.adm, "forced", "nobody leads", func(ps []kadm.PartitionDetail) bool { return len(ps) == 1 && ps[0].Leader < 0 })
	var of kadm.TopicsSet
	of.Add("forced", 0)
	k.eventually("the one that lives leads", func() error {
		got, err := k.adm.ElectLeaders(k.ctx(), kadm.ElectLiveReplica, of)
		if err != nil {
			return err
		}
		if r := got["forced"][0]; r.Err != nil && !errors.Is(r.Err, kerr.ElectionNotNeeded) {
			return r.Err
		}
		return nil
	})
	k.c.Await(k.adm, "forced", "it leads", func(ps []kadm.PartitionDetail) bool { return ps[0].Leader == 2 })
	k.c.Brokers[1].Start()
	k.c.AwaitWhole(k.adm, "forced")
	k.eventually("the preferred leader leads again", func() error {
		got, err := k.adm.ElectLeaders(k.ctx(), kadm.ElectPreferredReplica, of)
		if err != nil {
			return err
		}
		if r := got["forced"][0]; r.Err != nil && !errors.Is(r.Err, kerr.ElectionNotNeeded) {
			return r.Err
		}
		return nil
	})
	k.c.Await(k.adm, "forced", "the preferred leader leads", func(ps []kadm.PartitionDetail) bool { return ps[0].Leader == 1 })
}

// failover: topics are made and deleted, and settings changed through all brokers, while one controller after the other is
// killed. In the end each topic is there, or is not, with all its replicas, and each setting is the same everywhere.
func (k *corners) failover() {
	const rounds, each = 3, 6
	name := func(kind string, round, i int) string { return fmt.Sprintf("%s-%d-%d", kind, round, i) }
	for round := range rounds {
		for i := range each {
			k.create(name("doomed", round, i), []int32{0, 1, 2})
		}
		k.c.Await(k.adm, name("doomed", round, 0), "it is there", func(ps []kadm.PartitionDetail) bool { return len(ps) == 1 })
		meta, err := k.adm.BrokerMetadata(k.ctx())
		if err != nil || meta.Controller < 0 {
			k.Fatalf("the controller is %d, %v", meta.Controller, err)
		}
		var all sync.WaitGroup
		for i := range each {
			all.Go(func() { k.until("creating", func() error { return k.make(name("made", round, i)) }) })
			all.Go(func() { k.until("deleting", func() error { return k.unmake(name("doomed", round, i)) }) })
			all.Go(func() { k.until("setting", func() error { return k.retention(round*each + i) }) })
		}
		victim := k.c.Brokers[meta.Controller]
		time.Sleep(time.Duration(round*20) * time.Millisecond) // at another moment of the work
		victim.Kill()
		time.Sleep(time.Second)
		victim.Start()
		all.Wait()
	}
	for round := range rounds {
		for i := range each {
			k.c.AwaitWhole(k.adm, name("made", round, i))
		}
	}
	k.eventually("what was deleted is gone, also from the disks", func() error {
		for _, b := range k.c.Brokers {
			left, err := filepath.Glob(filepath.Join(b.Props["log.dirs"], "doomed-*-[0-9]"))
			if err != nil || len(left) > 0 {
				return fmt.Errorf("%v, %v", left, err)
			}
		}
		return nil
	})
	k.set("given", "retention.ms", "777000")
	for _, b := range k.c.Brokers {
		k.eventually("every broker knows the setting", func() error {
			cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
			if err != nil {
				return err
			}
			defer cl.Close()
			got, err := kadm.NewClient(cl).DescribeTopicConfigs(k.ctx(), "given")
			if err != nil {
				return err
			}
			for _, c := range got[0].Configs {
				if c.Key == "retention.ms" && c.MaybeValue() == "777000" {
					return nil
				}
			}
			return fmt.Errorf("it says %+v", got[0].Configs)
		})
	}
}

// until is eventually on a goroutine of its own.
func (k *corners) until(what string, try func() error) {
	var err error
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	k.Errorf("not in 90 s: %s: %v", what, err)
}

func (k *corners) short() (context.Context, context.CancelFunc) {
	return context.WithTimeout(k.Context(), 15*time.Second)
}

func (k *corners) make(topic string) error {
	ctx, cancel := k.short()
	defer cancel()
	if _, err := k.adm.CreateTopic(ctx, 1, 3, nil, topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return err
	}
	return nil
}

func (k *corners) unmake(topic string) error {
	ctx, cancel := k.short()
	defer cancel()
	got, err := k.adm.DeleteTopics(ctx, topic)
	if err != nil {
		return err
	}
	if err := got[topic].Err; err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return err
	}
	return nil
}

func (k *corners) retention(n int) error {
	ctx, cancel := k.short()
	defer cancel()
	v := fmt.Sprint(1_000_000 + n)
	got, err := k.adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &v}}, "given")
	if err != nil {
		return err
	}
	return got[0].Err
}
