package clients

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var franzCodecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

const bigBytes = 10 << 20

// TestFranzRoundTrip sends every shape of record with every codec and wants the same back.
func TestFranzRoundTrip(t *testing.T) {
	b := broker(t, map[string]string{"message.max.bytes": "12582912", "num.partitions": "1"})
	b.through(func(t *testing.T, suffix string) {
		for _, codec := range codecs {
			t.Run(codec+suffix, func(t *testing.T) {
				topic := "franz-" + codec + suffix
				ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
				defer cancel()
				cl := franzClient(t, b.Addr(), topic, kgo.ProducerBatchCompression(franzCodecs[codec]))
				want := shapes(topic)
				if err := cl.ProduceSync(ctx, cloneAll(want)...).FirstErr(); err != nil {
					t.Fatal(err)
				}
				got := consume(t, ctx, cl, len(want))
				for i := range want {
					compareRecord(t, i, want[i], got[i])
				}
				lookUpByTime(t, ctx, cl, topic, want)
			})
		}
	})
}

func franzClient(t *testing.T, addr, topic string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds(addr)...), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(topic),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ProducerBatchMaxBytes(12 << 20), kgo.FetchMaxBytes(32 << 20), kgo.FetchMaxPartitionBytes(1 << 20),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// shapes are records with null and empty parts, headers, explicit timestamps, and sizes to 10 MB.
func shapes(topic string) []*kgo.Record {
	rnd := rand.New(rand.NewPCG(1, 2))
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	rs := []*kgo.Record{
		{},
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte("k")},
		{Value: []byte("v")},
		{Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "", Value: []byte{}}}},
	}
	for n := 1; n <= bigBytes; n *= 10 {
		v := make([]byte, min(n, bigBytes))
		for i := range v {
			v[i] = byte(rnd.IntN(256))
		}
		rs = append(rs, &kgo.Record{Key: fmt.Appendf(nil, "size-%d", n), Value: v})
	}
	rs = append(rs, &kgo.Record{Key: []byte("big"), Value: bytes.Repeat([]byte("0123456789abcdef"), bigBytes/16)})
	for i, r := range rs {
		r.Topic, r.Timestamp = topic, at(i)
	}
	return rs
}

func cloneAll(rs []*kgo.Record) []*kgo.Record {
	out := make([]*kgo.Record, len(rs))
	for i, r := range rs {
		c := *r
		out[i] = &c
	}
	return out
}

func consume(t *testing.T, ctx context.Context, cl *kgo.Client, n int) []*kgo.Record {
	t.Helper()
	var got []*kgo.Record
	for len(got) < n {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", len(got), n, err)
		}
		got = append(got, fs.Records()...)
	}
	return got
}

func compareRecord(t *testing.T, i int, want, got *kgo.Record) {
	t.Helper()
	same := bytes.Equal(want.Key, got.Key) && bytes.Equal(want.Value, got.Value) &&
		(want.Key == nil) == (got.Key == nil) && (want.Value == nil) == (got.Value == nil) &&
		want.Timestamp.Equal(got.Timestamp) && len(want.Headers) == len(got.Headers) && got.Offset == int64(i)
	for j := range want.Headers {
		same = same && want.Headers[j].Key == got.Headers[j].Key && bytes.Equal(want.Headers[j].Value, got.Headers[j].Value) &&
			(want.Headers[j].Value == nil) == (got.Headers[j].Value == nil)
	}
	if !same {
		t.Errorf("record %d: sent key %.20q value %d bytes (nil %v) at %v, got offset %d key %.20q value %d bytes (nil %v) at %v, headers %v against %v",
			i, want.Key, len(want.Value), want.Value == nil, want.Timestamp, got.Offset, got.Key, len(got.Value), got.Value == nil, got.Timestamp, want.Headers, got.Headers)
	}
}

// lookUpByTime asks for a moment just after each record: the answer is the next one.
func lookUpByTime(t *testing.T, ctx context.Context, cl *kgo.Client, topic string, rs []*kgo.Record) {
	t.Helper()
	adm := kadm.NewClient(cl)
	for i, r := range rs {
		for after, want := range map[int64]int64{0: int64(i), 1: int64(i) + 1} {
			got, err := adm.ListOffsetsAfterMilli(ctx, r.Timestamp.UnixMilli()+after, topic)
			if err != nil {
				t.Fatal(err)
			}
			o, ok := got.Lookup(topic, 0)
			if !ok || o.Err != nil {
				t.Fatalf("record %d + %d ms: %v %v", i, after, ok, o.Err)
			}
			if o.Offset != want {
				t.Errorf("record %d + %d ms: offset %d, want %d", i, after, o.Offset, want)
			}
		}
	}
	max, err := adm.ListMaxTimestampOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := max.Lookup(topic, 0); o.Offset != int64(len(rs)-1) {
		t.Errorf("max timestamp: offset %d, want %d", o.Offset, len(rs)-1)
	}
}
