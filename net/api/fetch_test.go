package api_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/batch"
	"platter/net/api"
)

// stored is a batch as the log has it.
func stored(p []byte, offset int64) []byte {
	b := batch.Batch(bytes.Clone(p))
	b.SetBaseOffset(offset)
	b.SetLeaderEpoch(0)
	return b
}

func TestFetchGivesTheBytesThatCame(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	p := b.dial()
	var want []byte
	for i, c := range []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd} {
		recs := compressed(c)
		code(t, "produce", p.produce("t", 0, recs).ErrorCode, api.None)
		want = append(want, stored(recs, int64(i))...)
	}
	for _, v := range []int16{4, 11, 12, 13, 18} {
		for offset := range int64(6) {
			resp := ask[*kmsg.FetchResponse](p, v, fetchRequest("t", id, 0, offset))
			got := resp.Topics[0].Partitions[0]
			from := 0
			for range offset {
				n, err := batch.SizeOf(want[from:])
				must(t, err)
				from += n
			}
			if !bytes.Equal(got.RecordBatches, want[from:]) || got.ErrorCode != 0 || got.HighWatermark != 5 || got.LastStableOffset != 5 {
				t.Fatalf("version %d, offset %d: %d bytes, want %d; %v, high watermark %d", v, offset, len(got.RecordBatches), len(want)-from, api.Code(got.ErrorCode), got.HighWatermark)
			}
		}
	}
}

func TestFetchRefusals(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	p := b.dial()
	p.produce("t", 0, records(1, "a", "b"))
	for _, c := range []struct {
		what      string
		topic     string
		partition int32
		offset    int64
		code      api.Code
	}{
		{"in the middle of a batch", "t", 0, 1, api.None},
		{"at the end", "t", 0, 2, api.None},
		{"past the end", "t", 0, 3, api.OffsetOutOfRange},
		{"before the start", "t", 0, -1, api.OffsetOutOfRange},
		{"unknown topic", "nowhere", 0, 0, api.UnknownTopicOrPartition},
		{"unknown partition", "t", 3, 0, api.UnknownTopicOrPartition},
	} {
		code(t, c.what, p.fetch(fetchRequest(c.topic, id, c.partition, c.offset)).ErrorCode, c.code)
	}
	follower := fetchRequest("t", id, 0, 0)
	follower.ReplicaID = 2
	code(t, "a follower", p.fetch(follower).ErrorCode, api.NotLeaderOrFollower)
	id[3]++
	code(t, "unknown id", ask[*kmsg.FetchResponse](p, 13, fetchRequest("", id, 0, 0)).Topics[0].Partitions[0].ErrorCode, api.UnknownTopicID)
}

func TestFetchLimits(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 3)
	p := b.dial()
	size := 0
	for part := range int32(3) {
		for range 3 {
			recs := records(1, strings.Repeat("x", 1000))
			size = len(recs)
			p.produce("t", part, recs)
		}
	}
	all := func(most, each int32) *kmsg.FetchRequest {
		req := fetchRequest("t", [16]byte{}, 0, 0)
		req.MaxBytes = most
		q := &req.Topics[0].Partitions
		for part := range int32(3) {
			if part > 0 {
				*q = append(*q, (*q)[0])
			}
			(*q)[part].Partition, (*q)[part].PartitionMaxBytes = part, each
		}
		return req
	}
	for _, c := range []struct {
		most, each int32
		want       [3]int // batches
	}{
		{1 << 20, 1 << 20, [3]int{3, 3, 3}},
		{1, 1, [3]int{1, 0, 0}},
		{0, 0, [3]int{1, 0, 0}},
		{1 << 20, int32(size), [3]int{1, 1, 1}},
		{1 << 20, int32(2*size + 5), [3]int{2, 2, 2}},
		{int32(4 * size), 1 << 20, [3]int{3, 1, 0}},
		{-1, -1, [3]int{1, 0, 0}},
	} {
		resp := ask[*kmsg.FetchResponse](p, 12, all(c.most, c.each))
		for i, part := range resp.Topics[0].Partitions {
			if got := len(part.RecordBatches) / size; got != c.want[i] || len(part.RecordBatches)%size != 0 || part.ErrorCode != 0 {
				t.Errorf("%d bytes, %d a partition: partition %d gives %d batches, want %d; %v", c.most, c.each, i, got, c.want[i], api.Code(part.ErrorCode))
			}
		}
	}
	// The first partition that has data gives a batch, wherever it stands.
	req := all(1, 1)
	req.Topics[0].Partitions[0].FetchOffset = 3
	got := ask[*kmsg.FetchResponse](p, 12, req).Topics[0].Partitions
	if len(got[0].RecordBatches) != 0 || len(got[1].RecordBatches) != size || len(got[2].RecordBatches) != 0 {
		t.Errorf("batches of %d, %d and %d bytes", len(got[0].RecordBatches), len(got[1].RecordBatches), len(got[2].RecordBatches))
	}
}

func TestLongPoll(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 2)
	p, producer := b.dial(), b.dial()
	req := fetchRequest("t", [16]byte{}, 0, 0)
	req.MaxWaitMillis = 20_000

	t.Run("ends when data comes", func(t *testing.T) {
		id := p.send(12, req)
		producer.produce("t", 0, records(1, "a"))
		if got := p.receive(id, req).(*kmsg.FetchResponse).Topics[0].Partitions[0]; len(got.RecordBatches) == 0 {
			t.Fatal("an empty answer came before its time")
		}
	})
	t.Run("waits for min.bytes", func(t *testing.T) {
		more := fetchRequest("t", [16]byte{}, 1, 0)
		more.MaxWaitMillis, more.MinBytes = 20_000, 200
		id := p.send(12, more)
		for range 5 {
			producer.produce("t", 1, records(1, "aaaaaaaaaa"))
		}
		if got := p.receive(id, more).(*kmsg.FetchResponse).Topics[0].Partitions[0]; len(got.RecordBatches) < 200 {
			t.Fatalf("%d bytes came, asked for were 200", len(got.RecordBatches))
		}
	})
	t.Run("ends with its time", func(t *testing.T) {
		short := fetchRequest("t", [16]byte{}, 0, 1)
		short.MaxWaitMillis = 50
		begin := time.Now()
		if got := p.fetch(short); len(got.RecordBatches) != 0 || got.HighWatermark != 1 {
			t.Fatalf("%d bytes, high watermark %d", len(got.RecordBatches), got.HighWatermark)
		}
		if d := time.Since(begin); d < 50*time.Millisecond {
			t.Fatalf("an empty fetch was held for %v", d)
		}
	})
	t.Run("ends at once on an error", func(t *testing.T) {
		bad := fetchRequest("t", [16]byte{}, 0, 1)
		bad.MaxWaitMillis = 20_000
		bad.Topics[0].Partitions = append(bad.Topics[0].Partitions, bad.Topics[0].Partitions[0])
		bad.Topics[0].Partitions[1].FetchOffset = 99
		got := ask[*kmsg.FetchResponse](p, 12, bad).Topics[0].Partitions
		code(t, "good", got[0].ErrorCode, api.None)
		code(t, "bad", got[1].ErrorCode, api.OffsetOutOfRange)
	})
	t.Run("ends when the topic is deleted", func(t *testing.T) {
		b.create("gone", 1)
		poll := fetchRequest("gone", [16]byte{}, 0, 0)
		poll.MaxWaitMillis = 20_000
		id := p.send(12, poll)
		del := kmsg.NewPtrDeleteTopicsRequest()
		del.TopicNames, del.TimeoutMillis = []string{"gone"}, 5000
		code(t, "delete", ask[*kmsg.DeleteTopicsResponse](producer, 4, del).Topics[0].ErrorCode, api.None)
		if got := p.receive(id, poll).(*kmsg.FetchResponse).Topics[0].Partitions[0]; got.ErrorCode == 0 {
			t.Fatal("the fetch of a deleted topic has no error")
		}
	})
	t.Run("ends when the broker stops", func(t *testing.T) {
		poll := fetchRequest("t", [16]byte{}, 0, 1)
		poll.MaxWaitMillis = 20_000
		id := p.send(12, poll)
		b.awaitPoll() // or it is cut off before it is read
		go b.server.Close(t.Context())
		p.receive(id, poll)
	})
}

// TestFetchOfMorePartitionsThanFiles reads more partitions than files may be open, with a client that
// takes its time to read the answers and one that wants all at once.
func TestFetchOfMorePartitionsThanFiles(t *testing.T) {
	const partitions = 200
	b := startBroker(t, nil)
	b.create("many", partitions)
	p := b.dial()
	for part := range int32(partitions) {
		code(t, "produce", p.produce("many", part, records(1, "a")).ErrorCode, api.None)
	}
	all := fetchRequest("many", [16]byte{}, 0, 0)
	q := all.Topics[0].Partitions[0]
	all.Topics[0].Partitions = nil
	for part := range int32(partitions) {
		q.Partition = part
		all.Topics[0].Partitions = append(all.Topics[0].Partitions, q)
	}
	all.MaxWaitMillis, all.MinBytes = 20_000, 1<<20
	for range 20 {
		b.dial().send(12, all) // never read
	}
	seen := map[int32]bool{}
	for i := 0; len(seen) < partitions; i++ {
		if i == 2000 {
			t.Fatalf("%d fetches gave %d of %d partitions", i, len(seen), partitions)
		}
		some := 0
		for _, part := range ask[*kmsg.FetchResponse](p, 12, all).Topics[0].Partitions {
			code(t, "fetch", part.ErrorCode, api.None)
			if part.HighWatermark != 1 {
				t.Fatalf("partition %d: high watermark %d", part.Partition, part.HighWatermark)
			}
			if len(part.RecordBatches) > 0 {
				seen[part.Partition] = true
				some++
			}
		}
		if some == 0 {
			t.Fatal("a fetch gave nothing")
		}
	}
	code(t, "produce", p.produce("many", 7, records(1, "b")).ErrorCode, api.None)
}
