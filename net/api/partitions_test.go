package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/checkpoint"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/disk"
	"platter/net/api"
)

func emptyAssignment(topic string, count int32) *kmsg.CreatePartitionsRequest {
	req := morePartitions(topic, count)
	req.Topics[0].Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{}
	return req
}

func TestCreatePartitions(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 2)
	p := b.dial()
	for _, c := range []struct {
		req  *kmsg.CreatePartitionsRequest
		want api.Code
	}{
		{morePartitions("nowhere", 3), api.UnknownTopicOrPartition},
		{morePartitions("t", 1), api.InvalidPartitions},
		{morePartitions("t", 2), api.InvalidPartitions},
		{morePartitions("t", -1), api.InvalidPartitions},
		{morePartitions("t", 1<<30), api.InvalidPartitions},
		{morePartitions("t", 4, []int32{1}), api.InvalidReplicaAssignment},
		{morePartitions("t", 3, []int32{1, 1}), api.InvalidReplicaAssignment},
		{morePartitions("t", 3, []int32{7}), api.InvalidReplicaAssignment},
		{emptyAssignment("t", 3), api.InvalidReplicaAssignment},
		{morePartitions("__consumer_offsets", 100), api.InvalidTopicException},
	} {
		got := ask[*kmsg.CreatePartitionsResponse](p, 3, c.req).Topics[0]
		code(t, fmt.Sprintf("%+v (%v)", c.req.Topics[0], got.ErrorMessage), got.ErrorCode, c.want)
	}
	dry := morePartitions("t", 5)
	dry.ValidateOnly = true
	code(t, "dry run", ask[*kmsg.CreatePartitionsResponse](p, 3, dry).Topics[0].ErrorCode, api.None)
	if n := len(b.node.Image().Topics["t"].Partitions); n != 2 {
		t.Fatalf("a dry run made partitions: %d", n)
	}
	twice := morePartitions("t", 3)
	twice.Topics = append(twice.Topics, twice.Topics[0])
	if got := ask[*kmsg.CreatePartitionsResponse](p, 3, twice).Topics; len(got) != 1 || api.Code(got[0].ErrorCode) != api.InvalidRequest {
		t.Fatalf("named twice: %+v", got)
	}
	for n, req := range map[int32]*kmsg.CreatePartitionsRequest{4: morePartitions("t", 4, []int32{1}, []int32{1})} {
		code(t, "create", ask[*kmsg.CreatePartitionsResponse](p, 3, req).Topics[0].ErrorCode, api.None)
		// At once: the leaders serve when the answer comes.
		code(t, "produce", p.produce("t", n-1, records(1000, "a")).ErrorCode, api.None)
		if got := ask[*kmsg.MetadataResponse](p, 9, kmsg.NewPtrMetadataRequest()).Topics[0].Partitions; len(got) != int(n) {
			t.Fatalf("%d partitions, want %d", len(got), n)
		}
	}
}

func TestDeleteRecords(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	p := b.dial()
	for range 5 {
		p.produce("t", 0, records(1000, "a", "b"))
	}
	for _, c := range []struct {
		topic     string
		partition int32
		offset    int64
		code      api.Code
		start     int64
	}{
		{"t", 0, 3, api.None, 3},
		{"t", 0, 1, api.None, 3},
		{"t", 0, 11, api.OffsetOutOfRange, -1},
		{"t", 0, -2, api.OffsetOutOfRange, -1},
		{"t", 1, 0, api.UnknownTopicOrPartition, -1},
		{"nowhere", 0, 0, api.UnknownTopicOrPartition, -1},
		{"__consumer_offsets", 0, 0, api.InvalidTopicException, -1},
	} {
		got := ask[*kmsg.DeleteRecordsResponse](p, 2, deleteRecords(c.topic, c.partition, c.offset)).Topics[0].Partitions[0]
		code(t, fmt.Sprintf("%+v", c), got.ErrorCode, c.code)
		if got.LowWatermark != c.start {
			t.Errorf("%+v: low watermark %d", c, got.LowWatermark)
		}
	}
	code(t, "below the start", p.fetch(fetchRequest("t", [16]byte{}, 0, 2)).ErrorCode, api.OffsetOutOfRange)
	if got := p.fetch(fetchRequest("t", [16]byte{}, 0, 3)); got.ErrorCode != 0 || got.LogStartOffset != 3 {
		t.Fatalf("at the start: %v, log start %d", api.Code(got.ErrorCode), got.LogStartOffset)
	}
	starts := func() int64 {
		o, err := checkpoint.ReadOffsets(b.fs, "/data/"+checkpoint.LogStartOffsetFile)
		must(t, err)
		return o[checkpoint.Key(store.TP{Topic: "t"})]
	}
	if got := starts(); got != 3 {
		t.Fatalf("the checkpoint says %d", got)
	}
	if got := ask[*kmsg.DeleteRecordsResponse](p, 0, deleteRecords("t", 0, -1)).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.LowWatermark != 10 {
		t.Fatalf("all: %+v", got)
	}
	if got := starts(); got != 10 {
		t.Fatalf("the checkpoint says %d", got)
	}
	if got := p.produce("t", 0, records(1000, "c")); got.ErrorCode != 0 || got.BaseOffset != 10 || got.LogStartOffset != 10 {
		t.Fatalf("the next record: %+v", got)
	}
}

func TestDescribeLogDirs(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 2)
	b.create("u", 1)
	p := b.dial()
	p.produce("t", 1, records(1000, "a", "b"))
	all := ask[*kmsg.DescribeLogDirsResponse](p, 4, kmsg.NewPtrDescribeLogDirsRequest())
	if len(all.Dirs) != 1 || all.Dirs[0].Dir != "/data" || all.Dirs[0].ErrorCode != 0 {
		t.Fatalf("%+v", all)
	}
	if d := all.Dirs[0]; d.TotalBytes < d.UsableBytes || d.UsableBytes <= 0 {
		t.Fatalf("room: %d of %d", d.UsableBytes, d.TotalBytes)
	}
	var got string
	for _, topic := range all.Dirs[0].Topics {
		for _, part := range topic.Partitions {
			got += fmt.Sprintf("%s-%d %v %d; ", topic.Topic, part.Partition, part.Size > 0, part.OffsetLag)
		}
	}
	if want := "t-0 false 0; t-1 true 0; u-0 false 0; "; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	some := kmsg.NewPtrDescribeLogDirsRequest()
	some.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "u", Partitions: []int32{0, 9}}, {Topic: "nowhere", Partitions: []int32{0}}}
	if got := ask[*kmsg.DescribeLogDirsResponse](p, 2, some).Dirs[0].Topics; len(got) != 1 || got[0].Topic != "u" || len(got[0].Partitions) != 1 {
		t.Fatalf("%+v", got)
	}
}

// offlineDirs is two data directories, the second of which failed.
type offlineDirs struct{ api.Store }

func (offlineDirs) Get(store.TP) *commitlog.Log { return nil }

func (offlineDirs) Dirs() []store.DirInfo {
	here := []store.TP{{Topic: "t", Partition: 0}}
	return []store.DirInfo{{Path: "/a", Space: disk.Space{TotalBytes: 10, FreeBytes: 5}}, {Path: "/b", Offline: store.ErrOffline, Logs: here}}
}

func TestOfflineLogDirs(t *testing.T) {
	p := startFollower(t, new(follower)).dial()
	got := ask[*kmsg.DescribeLogDirsResponse](p, 4, kmsg.NewPtrDescribeLogDirsRequest()).Dirs
	if len(got) != 2 || got[0].ErrorCode != 0 || got[0].TotalBytes != 10 || got[0].UsableBytes != 5 {
		t.Fatalf("%+v", got)
	}
	code(t, "the failed one", got[1].ErrorCode, api.KafkaStorageError)
	if got[1].Dir != "/b" || len(got[1].Topics) != 0 || got[1].TotalBytes != -1 || got[1].UsableBytes != -1 {
		t.Fatalf("the failed one: %+v", got[1])
	}
}

// TestOnlyTheLeaderAdministers: records and producers are the leader's business.
func TestOnlyTheLeaderAdministers(t *testing.T) {
	p := startFollower(t, &follower{lost: true}).dial()
	code(t, "delete records", ask[*kmsg.DeleteRecordsResponse](p, 2, deleteRecords("t", 0, 0)).Topics[0].Partitions[0].ErrorCode, api.NotLeaderOrFollower)
	code(t, "producers", ask[*kmsg.DescribeProducersResponse](p, 0, describeProducers("t", 0)).Topics[0].Partitions[0].ErrorCode, api.NotLeaderOrFollower)
}

func TestDescribeProducers(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cl := b.client()
	for range 3 {
		must(t, cl.ProduceSync(ctx, record("t", "x")).FirstErr())
	}
	p := b.dial()
	got := ask[*kmsg.DescribeProducersResponse](p, 0, describeProducers("t", 0)).Topics[0].Partitions[0]
	code(t, "leader", got.ErrorCode, api.None)
	if len(got.ActiveProducers) != 1 {
		t.Fatalf("%+v", got)
	}
	if a := got.ActiveProducers[0]; a.LastSequence != 2 || a.ProducerEpoch != 0 || a.LastTimestamp <= 0 || a.CurrentTxnStartOffset != -1 || a.CoordinatorEpoch != -1 {
		t.Fatalf("%+v", a)
	}
	for topic, want := range map[string]api.Code{"nowhere": api.UnknownTopicOrPartition, "no good": api.InvalidTopicException} {
		code(t, topic, ask[*kmsg.DescribeProducersResponse](p, 0, describeProducers(topic, 0)).Topics[0].Partitions[0].ErrorCode, want)
	}
}

func TestElectLeaders(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 2)
	p := b.dial()
	for _, typ := range []int8{0, 1} {
		got := ask[*kmsg.ElectLeadersResponse](p, 2, electLeaders(typ, "t", 0, 1, 9, 0))
		code(t, "the whole", got.ErrorCode, api.None)
		var codes []api.Code
		for _, part := range got.Topics[0].Partitions {
			codes = append(codes, api.Code(part.ErrorCode))
		}
		if want := []api.Code{api.ElectionNotNeeded, api.ElectionNotNeeded, api.UnknownTopicOrPartition}; fmt.Sprint(codes) != fmt.Sprint(want) {
			t.Fatalf("type %d: %v, want %v", typ, codes, want)
		}
	}
	all := kmsg.NewPtrElectLeadersRequest()
	if got := ask[*kmsg.ElectLeadersResponse](p, 1, all); got.ErrorCode != 0 || len(got.Topics) != 0 {
		t.Fatalf("all: %+v", got)
	}
	code(t, "type 9", ask[*kmsg.ElectLeadersResponse](p, 2, electLeaders(9, "t", 0)).ErrorCode, api.InvalidRequest)
}

func TestNoReassignments(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	got := ask[*kmsg.ListPartitionReassignmentsResponse](b.dial(), 0, kmsg.NewPtrListPartitionReassignmentsRequest())
	if got.ErrorCode != 0 || len(got.Topics) != 0 {
		t.Fatalf("%+v", got)
	}
}
