package api_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

func listOffsets(topic string, partition int32, ts int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	q := kmsg.NewListOffsetsRequestTopic()
	q.Topic = topic
	qp := kmsg.NewListOffsetsRequestTopicPartition()
	qp.Partition, qp.Timestamp, qp.CurrentLeaderEpoch = partition, ts, -1
	q.Partitions = append(q.Partitions, qp)
	req.Topics = append(req.Topics, q)
	return req
}

func TestListOffsets(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	b.create("empty", 1)
	p := b.dial()
	for i, ts := range []int64{1000, 5000, 3000} { // records at 1000, 1001, 5000, 5001, 3000, 3001
		if r := p.produce("t", 0, records(ts, "a", "b")); r.ErrorCode != 0 || r.BaseOffset != int64(2*i) {
			t.Fatalf("produce: %v at %d", api.Code(r.ErrorCode), r.BaseOffset)
		}
	}
	for _, c := range []struct {
		what       string
		topic      string
		version    int16
		ts         int64
		offset, at int64
		code       api.Code
	}{
		{"latest", "t", 5, -1, 6, -1, api.None},
		{"earliest", "t", 1, -2, 0, -1, api.None},
		{"at a record", "t", 5, 1001, 1, 1001, api.None},
		{"between records", "t", 5, 1002, 2, 5000, api.None},
		{"before all", "t", 5, 0, 0, 1000, api.None},
		{"past the end", "t", 5, 9000, -1, -1, api.None},
		{"max timestamp", "t", 7, -3, 3, 5001, api.None},
		{"max timestamp too early", "t", 6, -3, -1, -1, api.UnsupportedVersion},
		{"earliest local", "t", 8, -4, 0, -1, api.None},
		{"latest tiered", "t", 9, -5, -1, -1, api.None},
		{"earliest pending upload", "t", 11, -6, -1, -1, api.None},
		{"a question to come", "t", 11, -7, -1, -1, api.UnsupportedVersion},
		{"latest of nothing", "empty", 7, -1, 0, -1, api.None},
		{"time in nothing", "empty", 7, 5, -1, -1, api.None},
		{"max timestamp of nothing", "empty", 7, -3, -1, -1, api.None},
		{"unknown topic", "nowhere", 7, -1, -1, -1, api.UnknownTopicOrPartition},
	} {
		got := ask[*kmsg.ListOffsetsResponse](p, c.version, listOffsets(c.topic, 0, c.ts)).Topics[0].Partitions[0]
		if got.Offset != c.offset || got.Timestamp != c.at || api.Code(got.ErrorCode) != c.code {
			t.Errorf("%s: offset %d at %d, %v; want %d at %d, %v", c.what, got.Offset, got.Timestamp, api.Code(got.ErrorCode), c.offset, c.at, c.code)
		}
	}
}

func TestListOffsetsOfOnePartitionTwice(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 2)
	req := listOffsets("t", 0, -1)
	twice := req.Topics[0].Partitions[0]
	other := twice
	other.Partition = 1
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, twice, other)
	got := ask[*kmsg.ListOffsetsResponse](b.dial(), 4, req).Topics[0].Partitions
	code(t, "first", got[0].ErrorCode, api.InvalidRequest)
	code(t, "second", got[1].ErrorCode, api.InvalidRequest)
	code(t, "other", got[2].ErrorCode, api.None)
}

func TestLeaderEpochs(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	p := b.dial()
	p.produce("t", 0, records(1000, "a", "b", "c"))
	for epoch, want := range map[int32]api.Code{-1: api.None, 0: api.None, 1: api.UnknownLeaderEpoch} {
		list := listOffsets("t", 0, -1)
		list.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		code(t, "ListOffsets", ask[*kmsg.ListOffsetsResponse](p, 4, list).Topics[0].Partitions[0].ErrorCode, want)

		fetch := fetchRequest("t", [16]byte{}, 0, 0)
		fetch.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		code(t, "Fetch", p.fetch(fetch).ErrorCode, want)

		end := kmsg.NewPtrOffsetForLeaderEpochRequest()
		end.ReplicaID = -1
		q := kmsg.NewOffsetForLeaderEpochRequestTopic()
		q.Topic = "t"
		qp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		qp.CurrentLeaderEpoch, qp.LeaderEpoch = epoch, 0
		q.Partitions = append(q.Partitions, qp)
		end.Topics = append(end.Topics, q)
		got := ask[*kmsg.OffsetForLeaderEpochResponse](p, 4, end).Topics[0].Partitions[0]
		code(t, "OffsetForLeaderEpoch", got.ErrorCode, want)
		if want == api.None && (got.LeaderEpoch != 0 || got.EndOffset != 3) {
			t.Fatalf("epoch 0 ends at %d (epoch %d)", got.EndOffset, got.LeaderEpoch)
		}
	}
}
