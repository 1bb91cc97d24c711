package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestRoundTripWithARealClient(t *testing.T) {
	b := startBroker(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	producer := b.client(kgo.DefaultProduceTopic("auto"), kgo.AllowAutoTopicCreation())
	const n = 1000
	for i := range n {
		producer.Produce(ctx, &kgo.Record{Value: fmt.Appendf(nil, "value %d", i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	must(t, producer.Flush(ctx))
	consumer := b.client(kgo.ConsumeTopics("auto"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	got := 0
	for got < n {
		fs := consumer.PollFetches(ctx)
		must(t, fs.Err())
		fs.EachRecord(func(r *kgo.Record) {
			if want := fmt.Sprintf("value %d", got); string(r.Value) != want {
				t.Errorf("record %d is %q, want %q", got, r.Value, want)
			}
			got++
		})
	}
}

func record(topic, value string) *kgo.Record { return &kgo.Record{Topic: topic, Value: []byte(value)} }
