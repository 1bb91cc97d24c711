package symptoms

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func maxVersions() *kversion.Versions { return kversion.Stable() }

// A consumer at the end of the log was told that it is out of range.
func TestConsumerAtTheEndIsInRange(t *testing.T) {
	s := start(t, nil)
	s.produce(&kgo.Record{Topic: "end", Value: []byte("one")})
	if p := s.fetch("end", 1, 10*time.Millisecond); p.ErrorCode != 0 || len(p.RecordBatches) != 0 {
		t.Errorf("a fetch at the log end: error code %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
	}
	wantCode(t, "a fetch beyond the log end", s.fetch("end", 2, 10*time.Millisecond).ErrorCode, kerr.OffsetOutOfRange)
	tail := s.from("end", kgo.NewOffset().At(1))
	s.produce(&kgo.Record{Topic: "end", Value: []byte("two")})
	if rs := s.next(tail); string(rs[0].Value) != "two" || rs[0].Offset != 1 {
		t.Errorf("the consumer at the end got %q at %d", rs[0].Value, rs[0].Offset)
	}
}

// A look-up of a time past the end left the partition out of the answer.
func TestTimePastTheEndIsAnswered(t *testing.T) {
	s := start(t, nil)
	s.produce(&kgo.Record{Topic: "time", Value: []byte("x")})
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = "time"
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Timestamp = time.Now().Add(24 * time.Hour).UnixMilli()
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp := request(s, s.cl, req).(*kmsg.ListOffsetsResponse)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		t.Fatalf("the partition is not in the answer: %+v", resp)
	}
	if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.Offset != -1 || p.Timestamp != -1 {
		t.Errorf("answered %+v, want offset and timestamp -1", p)
	}
}

// A record larger than the fetch size was asked for again and again.
func TestRecordLargerThanTheFetchArrives(t *testing.T) {
	s := start(t, map[string]string{"message.max.bytes": "4194304"})
	big := bytes.Repeat([]byte("0123456789"), 200_000)
	s.produce(&kgo.Record{Topic: "large", Value: big}, &kgo.Record{Topic: "large", Value: []byte("after")})
	small := s.from("large", kgo.NewOffset().AtStart(), kgo.FetchMaxBytes(1000), kgo.FetchMaxPartitionBytes(1000))
	var got []*kgo.Record
	for len(got) < 2 {
		got = append(got, s.next(small)...)
	}
	if !bytes.Equal(got[0].Value, big) || string(got[1].Value) != "after" {
		t.Errorf("got %d and %q", len(got[0].Value), got[1].Value)
	}
}

// An empty fetch was answered at once, so that consumers spun.
func TestEmptyFetchIsHeld(t *testing.T) {
	s := start(t, nil)
	s.produce(&kgo.Record{Topic: "held", Value: []byte("one")})
	answer := make(chan kmsg.FetchResponseTopicPartition, 1)
	go func() { answer <- s.fetch("held", 1, 60*time.Second) }()
	select {
	case p := <-answer:
		t.Fatalf("an empty fetch with a minute's wait was answered after a moment: %+v", p)
	case <-time.After(300 * time.Millisecond):
	}
	s.produce(&kgo.Record{Topic: "held", Value: []byte("two")})
	select {
	case p := <-answer:
		if len(p.RecordBatches) == 0 {
			t.Error("the held fetch was answered without the record")
		}
	case <-s.ctx.Done():
		t.Error("the held fetch was not answered when the record came")
	}
}

// The first sends to fresh topics failed.
func TestFirstSendsToFreshTopics(t *testing.T) {
	s := start(t, nil)
	once := s.client(kgo.RecordRetries(0), kgo.UnknownTopicRetries(0))
	const topics = 50
	failed := make(chan error, topics)
	for i := range topics {
		once.Produce(s.ctx, &kgo.Record{Topic: fmt.Sprintf("fresh-%d", i), Value: []byte("x")}, func(_ *kgo.Record, err error) { failed <- err })
	}
	for range topics {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// A topic that was deleted and made anew left its consumers looping.
func TestRecreatedTopic(t *testing.T) {
	s := start(t, nil)
	adm := kadm.NewClient(s.cl)
	for range 3 {
		s.produce(&kgo.Record{Topic: "again", Value: []byte("old")})
	}
	byID := s.client(kgo.ConsumeTopics("again"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMaxAge(200*time.Millisecond))
	s.next(byID)
	meta, err := adm.Metadata(s.ctx, "again")
	if err != nil {
		t.Fatal(err)
	}
	old := meta.Topics["again"].ID
	if _, err := adm.DeleteTopic(s.ctx, "again"); err != nil {
		t.Fatal(err)
	}
	// The consumer, which asks for the topic all the time, may have made it by then.
	if _, err := adm.CreateTopic(s.ctx, 1, 1, nil, "again"); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Fatal(err)
	}
	fresh := s.client()
	if err := fresh.ProduceSync(s.ctx, &kgo.Record{Topic: "again", Value: []byte("new")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a fetch by name at the old offset", s.fetch("again", 3, 0).ErrorCode, kerr.OffsetOutOfRange)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 60_000, 1, 1<<20, -1
	rt := kmsg.NewFetchRequestTopic()
	rt.TopicID = old
	rt.Partitions = append(rt.Partitions, kmsg.NewFetchRequestTopicPartition())
	req.Topics = append(req.Topics, rt)
	p := request(s, s.cl, req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	wantCode(t, "a fetch by the old id", p.ErrorCode, kerr.UnknownTopicID)
	// franz-go tells its user that the id is gone, who then asks for the topic anew.
	for {
		fs := byID.PollFetches(s.ctx)
		switch err := fs.Err(); {
		case errors.Is(err, kerr.UnknownTopicID):
			byID.PurgeTopicsFromClient("again")
			byID.AddConsumeTopics("again")
		case err != nil:
			t.Fatal(err)
		}
		if rs := fs.Records(); len(rs) > 0 && string(rs[len(rs)-1].Value) == "new" {
			return
		}
	}
}

// A client of the future asks ApiVersions in a version that nobody knows yet.
func TestApiVersionsFromTheFuture(t *testing.T) {
	s := start(t, nil)
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "future", "1"
	body := futureApiVersions(t, s.Addr(), req)
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := resp.ReadFrom(body); err != nil { // version 0
		t.Fatal(err)
	}
	wantCode(t, "ApiVersions 99", resp.ErrorCode, kerr.UnsupportedVersion)
	if len(resp.ApiKeys) == 0 {
		t.Error("the answer does not say what is served")
	}
}
