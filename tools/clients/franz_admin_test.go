package clients

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestFranzAdministration: franz-go's admin client grows a topic, deletes records, changes settings, and asks for
// directories, producers, elections and reassignments.
func TestFranzAdministration(t *testing.T) {
	b := broker(t, map[string]string{"broker.id": "0", "num.partitions": "2"})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds(b.Addr())...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err = adm.CreateTopic(ctx, 2, replicas(), nil, "a")
	check("create", err)
	for range 5 {
		check("produce", cl.ProduceSync(ctx, &kgo.Record{Topic: "a", Value: []byte("x")}).FirstErr())
	}

	grown, err := adm.CreatePartitions(ctx, 2, "a")
	check("create partitions", errors.Join(err, grown.Error()))
	details, err := adm.ListTopics(ctx, "a")
	check("list", err)
	if n := len(details["a"].Partitions); n != 4 {
		t.Errorf("%d partitions, want 4", n)
	}

	until := kadm.Offsets{}
	until.AddOffset("a", 0, 3, -1)
	until.AddOffset("a", 1, -1, -1)
	deleted, err := adm.DeleteRecords(ctx, until)
	check("delete records", errors.Join(err, deleted.Error()))
	if r, _ := deleted.Lookup("a", 0); r.LowWatermark != 3 {
		t.Errorf("low watermark %d, want 3", r.LowWatermark)
	}
	until.AddOffset("a", 2, 7, -1)
	deleted, _ = adm.DeleteRecords(ctx, until)
	if r, _ := deleted.Lookup("a", 2); !errors.Is(r.Err, kerr.OffsetOutOfRange) {
		t.Errorf("beyond the end: %v", r.Err)
	}
	starts, err := adm.ListStartOffsets(ctx, "a")
	check("start offsets", err)
	if o, _ := starts.Lookup("a", 0); o.Offset != 3 {
		t.Errorf("starts at %d, want 3", o.Offset)
	}

	dirs, err := adm.DescribeAllLogDirs(ctx, nil)
	check("log dirs", errors.Join(err, dirs[0].Error()))
	if p, ok := dirs[0].Lookup(b.Dir+"/data", "a", 0); !ok || p.Size <= 0 {
		t.Errorf("log dirs: %+v", dirs)
	}
	producers, err := adm.DescribeProducers(ctx, details.TopicsSet())
	check("producers", err)
	if p := producers["a"].Partitions[0]; p.Err != nil || len(p.ActiveProducers) != 1 {
		t.Errorf("producers: %+v", p)
	}
	if b.settleWhole("a"); rolled() { // then others lead
		_, err = adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, details.TopicsSet())
		check("elect those who led", err)
	}
	elected, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, details.TopicsSet())
	check("elect", err)
	if got := elected["a"][0].Err; !errors.Is(got, kerr.ElectionNotNeeded) {
		t.Errorf("elect: %v", got)
	}
	moving, err := adm.ListPartitionReassignments(ctx, nil)
	check("reassignments", err)
	if len(moving) != 0 {
		t.Errorf("reassignments: %+v", moving)
	}

	altered, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("1000")}}, "a")
	check("alter", errors.Join(err, altered[0].Err))
	altered, err = adm.AlterTopicConfigsState(ctx, []kadm.AlterConfig{{Name: "segment.bytes", Value: kadm.StringPtr("100000")}}, "a")
	check("replace", errors.Join(err, altered[0].Err))
	altered, err = adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.retention.ms", Value: kadm.StringPtr("2000")}})
	check("alter all brokers", errors.Join(err, altered[0].Err))
	configs, err := adm.DescribeTopicConfigs(ctx, "a")
	check("configs", err)
	got := map[string]string{}
	for _, c := range configs[0].Configs {
		got[c.Key] = c.MaybeValue() + " " + c.Source.String()
	}
	for name, want := range map[string]string{"retention.ms": "2000 DYNAMIC_DEFAULT_BROKER_CONFIG", "segment.bytes": "100000 DYNAMIC_TOPIC_CONFIG"} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}

	// What was answered holds over a kill.
	b.Kill()
	b.Start()
	starts, err = adm.ListStartOffsets(ctx, "a")
	check("start offsets after a kill", err)
	if o, _ := starts.Lookup("a", 0); o.Err != nil || o.Offset != 3 {
		t.Errorf("after a kill it starts at %d (%v), want 3", o.Offset, o.Err)
	}
	details, err = adm.ListTopics(ctx, "a")
	check("list after a kill", err)
	if n := len(details["a"].Partitions); n != 4 {
		t.Errorf("%d partitions after a kill, want 4", n)
	}
}
