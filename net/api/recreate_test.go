package api_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/api"
)

func (b *broker) remove(topic string) {
	b.t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TopicNames = []string{topic}
	code(b.t, "delete", ask[*kmsg.DeleteTopicsResponse](b.dial(), 5, req).Topics[0].ErrorCode, api.None)
}

// TestDeletedUnderAFetch: who waits for records of a topic hears of its deletion at once, not when its wait is up.
func TestDeletedUnderAFetch(t *testing.T) {
	b := startBroker(t, nil)
	for version, want := range map[int16]api.Code{12: api.UnknownTopicOrPartition, 13: api.UnknownTopicID, 18: api.UnknownTopicID} {
		id := b.create("t", 1)
		p := b.dial()
		req := fetchRequest("t", id, 0, 0)
		req.MaxWaitMillis = 25_000 // less than the connection's own deadline: the code tells who ended it
		sent := p.send(version, req)
		b.remove("t")
		got := p.receive(sent, req).(*kmsg.FetchResponse)
		code(t, "the fetch", got.Topics[0].Partitions[0].ErrorCode, want)
	}
}

// TestRecreated: a topic of the same name is another one; the old one's id, offsets and records are gone.
func TestRecreated(t *testing.T) {
	b := startBroker(t, nil)
	old := b.create("t", 2)
	p := b.dial()
	p.produce("t", 0, records(1000, "a", "b", "c"))
	b.remove("t")
	code(t, "produce between", p.produce("t", 0, records(1000, "x")).ErrorCode, api.UnknownTopicOrPartition)
	id := b.create("t", 1)
	if id == old {
		t.Fatal("the id is the old one's")
	}
	for _, v := range []int16{13, 18} {
		code(t, "fetch by the old id", ask[*kmsg.FetchResponse](p, v, fetchRequest("t", old, 0, 0)).Topics[0].Partitions[0].ErrorCode, api.UnknownTopicID)
	}
	code(t, "produce by the old id", ask[*kmsg.ProduceResponse](p, 13, produceRequest("t", old, 0, -1, records(1, "x"))).Topics[0].Partitions[0].ErrorCode, api.UnknownTopicID)
	meta := kmsg.NewPtrMetadataRequest()
	q := kmsg.NewMetadataRequestTopic()
	q.TopicID = old
	meta.Topics = append(meta.Topics, q)
	code(t, "metadata of the old id", ask[*kmsg.MetadataResponse](p, 12, meta).Topics[0].ErrorCode, api.UnknownTopicID)
	code(t, "the old offset", p.fetch(fetchRequest("t", id, 0, 3)).ErrorCode, api.OffsetOutOfRange)
	code(t, "a partition that only the old one had", p.produce("t", 1, records(1000, "x")).ErrorCode, api.UnknownTopicOrPartition)
	if got := p.produce("t", 0, records(1000, "d")); got.ErrorCode != 0 || got.BaseOffset != 0 {
		t.Fatalf("the first record: %v at %d", api.Code(got.ErrorCode), got.BaseOffset)
	}
	if got := ask[*kmsg.FetchResponse](p, 13, fetchRequest("t", id, 0, 0)).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.HighWatermark != 1 {
		t.Fatalf("fetch by the new id: %v, high watermark %d", api.Code(got.ErrorCode), got.HighWatermark)
	}
}

// TestRecreatedUnderAClient: franz-go never takes over a topic's new id by itself; it has to be told, soon, and goes on
// when the topic is given to it again.
func TestRecreatedUnderAClient(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	producer := b.client()
	must(t, producer.ProduceSync(ctx, record("t", "old")).FirstErr())
	consumer := b.client(kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(20*time.Millisecond), kgo.FetchMaxWait(20*time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }))
	next := func() (string, error) {
		t.Helper()
		fs := consumer.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return "", err
		}
		if errs := fs.Errors(); len(errs) > 0 {
			return "", errs[0].Err
		}
		return string(fs.Records()[0].Value), nil
	}
	if got, err := next(); err != nil || got != "old" {
		t.Fatalf("%q, %v", got, err)
	}
	b.remove("t")
	b.create("t", 1)
	for {
		_, err := next()
		must(t, ctx.Err())
		if errors.Is(err, kerr.UnknownTopicID) {
			break
		}
	}
	producer.PurgeTopicsFromClient("t")
	must(t, producer.ProduceSync(ctx, record("t", "new")).FirstErr())
	consumer.PurgeTopicsFromClient("t")
	consumer.AddConsumeTopics("t")
	for {
		got, err := next()
		must(t, ctx.Err())
		if err == nil {
			if got != "new" {
				t.Fatalf("%q", got)
			}
			return
		}
	}
}
