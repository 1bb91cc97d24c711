package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

// TestUncleanElection: the last in-sync replica is dead, and one that lags is there.
func TestUncleanElection(t *testing.T) {
	coordinator := StartCoordinator(t, proc.Binary(t))
	c := New(t, proc.Binary(t), 3, coordinator.Addr(), nil)
	c.Start()
	u := &unclean{t: t, c: c, adm: c.Admin()}

	t.Run("off: the partition waits for it, and nothing is lost", func(t *testing.T) {
		u.t = t
		last, lagging := u.strand("waits", nil)
		u.lead("waits", "nobody leads", func(p kadm.PartitionDetail) bool { return p.Leader < 0 })
		lagging.Start()
		time.Sleep(2 * time.Second) // a chance to go wrong
		u.lead("waits", "nobody leads while the last in-sync replica is away", func(p kadm.PartitionDetail) bool {
			return p.Leader < 0 && slices.Equal(p.ISR, []int32{u.id(last)})
		})
		last.Start()
		c.AwaitWhole(u.adm, "waits")
		u.holds("waits", "early", "late")
	})
	t.Run("on: another leads, and the followers cut back", func(t *testing.T) {
		u.t = t
		on := "true"
		last, lagging := u.strand("moves", map[string]*string{"unclean.leader.election.enable": &on})
		lagging.Start()
		u.movedTo("moves", last, lagging)
	})
	t.Run("switched on while the partition waits", func(t *testing.T) {
		u.t = t
		last, lagging := u.strand("late", nil)
		lagging.Start()
		u.lead("late", "nobody leads", func(p kadm.PartitionDetail) bool { return p.Leader < 0 })
		on := "true"
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		got, err := u.adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "unclean.leader.election.enable", Value: &on}}, "late")
		if err != nil || got[0].Err != nil {
			t.Fatal(err, got)
		}
		u.movedTo("late", last, lagging)
	})
}

type unclean struct {
	t   *testing.T
	c   *Cluster
	adm *kadm.Client
}

func (u *unclean) id(b *proc.Broker) int32 { return int32(slices.Index(u.c.Brokers, b)) }

// lead waits until the topic's one partition is as wanted.
func (u *unclean) lead(topic, what string, want func(kadm.PartitionDetail) bool) {
	u.t.Helper()
	u.c.Await(u.adm, topic, what, func(ps []kadm.PartitionDetail) bool { return len(ps) == 1 && want(ps[0]) })
}

// strand makes a topic with the record "early" on two replicas and "late" on one of them, and kills both: first
// the one that lacks it. The third broker goes on.
func (u *unclean) strand(topic string, configs map[string]*string) (last, lagging *proc.Broker) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), 120*time.Second)
	defer cancel()
	if _, err := u.adm.CreateTopic(ctx, 1, 2, configs, topic); err != nil {
		u.t.Fatal(err)
	}
	u.c.AwaitWhole(u.adm, topic)
	u.say(ctx, topic, "early")
	var at kadm.PartitionDetail
	u.lead(topic, "it is led", func(p kadm.PartitionDetail) bool { at = p; return p.Leader >= 0 })
	last = u.c.Brokers[at.Leader]
	lagging = u.c.Brokers[at.Replicas[slices.IndexFunc(at.Replicas, func(id int32) bool { return id != at.Leader })]]
	lagging.Kill()
	u.lead(topic, "the leader is alone in sync", func(p kadm.PartitionDetail) bool {
		return p.Leader == at.Leader && slices.Equal(p.ISR, []int32{at.Leader})
	})
	u.say(ctx, topic, "late")
	last.Kill()
	return last, lagging
}

// movedTo wants the lagging replica to lead, to take records, and all replicas to be what it has, once the one that
// had more is back.
func (u *unclean) movedTo(topic string, last, lagging *proc.Broker) {
	u.t.Helper()
	u.lead(topic, "the lagging replica leads", func(p kadm.PartitionDetail) bool { return p.Leader == u.id(lagging) })
	ctx, cancel := context.WithTimeout(u.t.Context(), 120*time.Second)
	defer cancel()
	u.say(ctx, topic, "after")
	last.Start()
	u.c.AwaitWhole(u.adm, topic)
	u.holds(topic, "early", "after")
	// What the other replica has, it has as a leader too.
	lagging.Kill()
	u.lead(topic, "the replica that was cut back leads", func(p kadm.PartitionDetail) bool { return p.Leader == u.id(last) })
	u.holds(topic, "early", "after")
	lagging.Start()
	u.c.AwaitWhole(u.adm, topic)
}

func (u *unclean) client(opts ...kgo.Opt) *kgo.Client {
	u.t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(u.c.Bootstrap(), ",")...), kgo.MetadataMinAge(20*time.Millisecond))...)
	if err != nil {
		u.t.Fatal(err)
	}
	return cl
}

func (u *unclean) say(ctx context.Context, topic, text string) {
	u.t.Helper()
	cl := u.client(kgo.DefaultProduceTopic(topic))
	defer cl.Close()
	if err := cl.ProduceSync(ctx, kgo.StringRecord(text)).FirstErr(); err != nil {
		u.t.Fatalf("%s to %s: %v", text, topic, err)
	}
}

// holds wants just these records.
func (u *unclean) holds(topic string, want ...string) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), 90*time.Second)
	defer cancel()
	cl := u.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	var got []string
	for len(got) < len(want) && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got = append(got, fmt.Sprint(r.Offset, " ", string(r.Value))) })
	}
	for i := range want {
		want[i] = fmt.Sprint(i, " ", want[i])
	}
	if !slices.Equal(got, want) {
		u.t.Fatalf("%s holds %q, not %q", topic, got, want)
	}
}
