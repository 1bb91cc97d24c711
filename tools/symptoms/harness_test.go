// Package symptoms shows, one test each, that what users of such brokers complain of does not occur here.
package symptoms

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

// site is a broker process and a client of it.
type site struct {
	*proc.Broker
	t   *testing.T
	ctx context.Context
	cl  *kgo.Client
}

func start(t *testing.T, props map[string]string) *site {
	t.Helper()
	b := proc.New(t, proc.Binary(t), t.TempDir())
	for k, v := range props {
		b.Props[k] = v
	}
	b.Start()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	t.Cleanup(cancel)
	s := &site{Broker: b, t: t, ctx: ctx}
	s.cl = s.client()
	return s
}

func (s *site) client(opts ...kgo.Opt) *kgo.Client {
	s.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.Addr()), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.ProducerBatchMaxBytes(4 << 20), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cl.Close)
	return cl
}

// from consumes a topic from an offset on.
func (s *site) from(topic string, o kgo.Offset, opts ...kgo.Opt) *kgo.Client {
	return s.client(append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: o}}))...)
}

func (s *site) produce(rs ...*kgo.Record) {
	s.t.Helper()
	if err := s.cl.ProduceSync(s.ctx, rs...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// next polls until there are records.
func (s *site) next(cl *kgo.Client) []*kgo.Record {
	s.t.Helper()
	for {
		fs := cl.PollFetches(s.ctx)
		if err := fs.Err(); err != nil {
			s.t.Fatal(err)
		}
		if rs := fs.Records(); len(rs) > 0 {
			return rs
		}
	}
}

// fetch asks once for partition 0 of a topic, by name, and returns its part of the answer.
func (s *site) fetch(topic string, offset int64, maxWait time.Duration) kmsg.FetchResponseTopicPartition {
	s.t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = int32(maxWait.Milliseconds()), 1, 1<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp := request(s, s.pinned(1, 12), req)
	return resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// pinned is a client that speaks one version of one key.
func (s *site) pinned(key, version int16) *kgo.Client {
	v := maxVersions()
	v.SetMaxKeyVersion(key, version)
	return s.client(kgo.MaxVersions(v))
}

// request sends to the only broker, as it is, without the client's own handling.
func request(s *site, cl *kgo.Client, req kmsg.Request) kmsg.Response {
	s.t.Helper()
	resp, err := cl.Broker(0).Request(s.ctx, req)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

func wantCode(t *testing.T, what string, code int16, want *kerr.Error) {
	t.Helper()
	if code != want.Code {
		t.Errorf("%s: error code %d, want %v", what, code, want)
	}
}
