package wire

import (
	"bytes"
	"io"
	"math"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/io/disk"
	"platter/net/frame"
)

// The independent truth is kmsg: what it encodes must decode to the same here, and the reverse.

func topicID(b byte) (id [16]byte) {
	for i := range id {
		id[i] = b + byte(i)
	}
	return id
}

func TestProduceRequestAgainstKmsg(t *testing.T) {
	q := GetProduceRequest()
	defer q.Put()
	for v := int16(3); v <= 13; v++ {
		for _, txn := range []*string{nil, kmsg.StringPtr("txn")} {
			k := kmsg.NewPtrProduceRequest()
			k.Version, k.TransactionID, k.Acks, k.TimeoutMillis = v, txn, -1, 1234
			for i, name := range []string{"one", "two"} {
				kt := kmsg.ProduceRequestTopic{}
				if v >= 13 {
					kt.TopicID = topicID(byte(i + 1))
				} else {
					kt.Topic = name
				}
				kt.Partitions = []kmsg.ProduceRequestTopicPartition{
					{Partition: 7, Records: []byte("records")}, {Partition: 8}, {Partition: 9, Records: []byte{}}}
				k.Topics = append(k.Topics, kt)
			}
			body := k.AppendTo(nil)
			if err := q.Decode(v, body); err != nil {
				t.Fatalf("v%d: %v", v, err)
			}
			got := kmsg.NewPtrProduceRequest()
			got.Version, got.Acks, got.TimeoutMillis = v, q.Acks, q.TimeoutMs
			if q.TransactionalID != "" {
				got.TransactionID = &q.TransactionalID
			}
			for _, qt := range q.Topics {
				kt := kmsg.ProduceRequestTopic{Topic: qt.Name, TopicID: qt.ID}
				for _, p := range qt.Partitions {
					kt.Partitions = append(kt.Partitions, kmsg.ProduceRequestTopicPartition{Partition: p.Partition, Records: p.Records})
				}
				got.Topics = append(got.Topics, kt)
			}
			if diff := diffKmsg(k, got); diff != "" {
				t.Errorf("v%d: %s", v, diff)
			}
			cutShort(t, body, func(p []byte) error { return q.Decode(v, p) })
		}
	}
}

// diffKmsg compares messages by what kmsg makes of them.
func diffKmsg(want, got interface{ AppendTo([]byte) []byte }) string {
	w, g := want.AppendTo(nil), got.AppendTo(nil)
	if bytes.Equal(w, g) {
		return ""
	}
	return cmp.Diff(w, g)
}

// cutShort wants an error for every prefix of a body.
func cutShort(t *testing.T, body []byte, decode func([]byte) error) {
	t.Helper()
	for n := range body {
		if decode(body[:n]) == nil {
			t.Fatalf("%d of %d bytes decode", n, len(body))
		}
	}
}

func TestProduceResponseAgainstKmsg(t *testing.T) {
	var p ProduceResponse
	for v := int16(3); v <= 13; v++ {
		p.Reset()
		p.ThrottleMs = 5
		p.Endpoints = append(p.Endpoints, Endpoint{ID: 3, Host: "host", Port: 9092}, Endpoint{ID: 4, Host: "other", Port: 1, Rack: "r"})
		topic := p.AddTopic("topic", topicID(9))
		topic.AddPartition(0).BaseOffset = 99
		bad := topic.AddPartition(1)
		bad.ErrorCode, bad.ErrorMessage, bad.LogAppendTimeMs, bad.LogStartOffset = 87, "why", 4, 5
		bad.RecordErrors = []RecordError{{BatchIndex: 2, Message: "null key"}, {BatchIndex: 3}}
		bad.Leader = LeaderHint{Known: true, ID: 3, Epoch: 12}
		p.AddTopic("empty", [16]byte{})
		body := p.Append(nil, v)

		k := kmsg.NewPtrProduceResponse()
		k.Version = v
		if err := k.ReadFrom(body); err != nil {
			t.Fatalf("v%d: %v", v, err)
		}
		if !bytes.Equal(k.AppendTo(nil), body) {
			t.Errorf("v%d: kmsg writes it differently", v)
		}
		kp := k.Topics[0].Partitions
		if k.ThrottleMillis != 5 || len(k.Topics) != 2 || len(kp) != 2 || kp[0].BaseOffset != 99 || kp[1].ErrorCode != 87 || kp[1].LogAppendTime != 4 {
			t.Errorf("v%d: %+v", v, k)
		}
		if v >= 8 && (len(kp[1].ErrorRecords) != 2 || *kp[1].ErrorMessage != "why" || *kp[1].ErrorRecords[0].ErrorMessage != "null key") {
			t.Errorf("v%d: record errors %+v", v, kp[1])
		}
		if v >= 10 && (kp[1].CurrentLeader.LeaderID != 3 || kp[0].CurrentLeader.LeaderID != -1 || len(k.Brokers) != 2 || k.Brokers[1].Host != "other") {
			t.Errorf("v%d: hints %+v, %+v", v, kp, k.Brokers)
		}
	}
}

func kmsgFetch(v int16) *kmsg.FetchRequest {
	k := kmsg.NewPtrFetchRequest()
	k.Version, k.ReplicaID, k.MaxWaitMillis, k.MinBytes, k.MaxBytes, k.IsolationLevel = v, 5, 500, 1, 1<<20, 1
	k.SessionID, k.SessionEpoch, k.Rack = 77, 3, "rack"
	if v >= 12 {
		k.ClusterID = kmsg.StringPtr("cluster")
	}
	if v >= 15 {
		k.ReplicaState.ID, k.ReplicaState.Epoch = 6, 1<<40
	}
	for i, name := range []string{"one", "two"} {
		kt := kmsg.NewFetchRequestTopic()
		kt.Topic, kt.TopicID = name, topicID(byte(i))
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.FetchOffset, p.LastFetchedEpoch, p.LogStartOffset, p.PartitionMaxBytes = 1, 2, 3, 4, 5, 6
		if v >= 17 {
			p.ReplicaDirectoryID = topicID(40)
		}
		if v >= 18 {
			p.HighWatermark = 1 << 33
		}
		kt.Partitions = append(kt.Partitions, p, kmsg.NewFetchRequestTopicPartition())
		k.Topics = append(k.Topics, kt)
		k.ForgottenTopics = append(k.ForgottenTopics, kmsg.FetchRequestForgottenTopic{Topic: name, TopicID: topicID(byte(i)), Partitions: []int32{4, 5}})
	}
	return k
}

func TestFetchRequestAgainstKmsg(t *testing.T) {
	q := GetFetchRequest()
	defer q.Put()
	for v := int16(4); v <= 18; v++ {
		k := kmsgFetch(v)
		body := k.AppendTo(nil)
		if err := q.Decode(v, body); err != nil {
			t.Fatalf("v%d: %v", v, err)
		}
		got := kmsg.NewPtrFetchRequest()
		got.Version, got.ReplicaID, got.MaxWaitMillis, got.MinBytes, got.MaxBytes = v, q.ReplicaID, q.MaxWaitMs, q.MinBytes, q.MaxBytes
		got.IsolationLevel, got.SessionID, got.SessionEpoch, got.Rack = q.Isolation, q.SessionID, q.SessionEpoch, q.Rack
		if v >= 12 {
			got.ClusterID = &q.ClusterID
		}
		if v >= 15 {
			got.ReplicaState.ID, got.ReplicaState.Epoch = q.ReplicaID, q.ReplicaEpoch
		}
		for _, qt := range q.Topics {
			kt := kmsg.FetchRequestTopic{Topic: qt.Name, TopicID: qt.ID}
			for _, p := range qt.Partitions {
				kt.Partitions = append(kt.Partitions, kmsg.FetchRequestTopicPartition{
					Partition: p.Partition, CurrentLeaderEpoch: p.CurrentLeaderEpoch, FetchOffset: p.FetchOffset, LastFetchedEpoch: p.LastFetchedEpoch,
					LogStartOffset: p.LogStartOffset, PartitionMaxBytes: p.MaxBytes, ReplicaDirectoryID: p.DirectoryID, HighWatermark: p.HighWatermark,
				})
			}
			got.Topics = append(got.Topics, kt)
		}
		for _, f := range q.Forgotten {
			got.ForgottenTopics = append(got.ForgottenTopics, kmsg.FetchRequestForgottenTopic(kmsg.FetchRequestForgottenTopic{Topic: f.Name, TopicID: f.ID, Partitions: f.Partitions}))
		}
		if diff := diffKmsg(k, got); diff != "" {
			t.Errorf("v%d: %s", v, diff)
		}
		cutShort(t, body, func(p []byte) error { return q.Decode(v, p) })
	}
}

func TestFetchRequestDefaults(t *testing.T) {
	q := GetFetchRequest()
	defer q.Put()
	for _, v := range []int16{18, 4, 15} {
		k := kmsg.NewPtrFetchRequest()
		k.Version = v
		kt := kmsg.NewFetchRequestTopic()
		kt.Partitions = append(kt.Partitions, kmsg.NewFetchRequestTopicPartition())
		k.Topics = append(k.Topics, kt)
		if err := q.Decode(v, k.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		p := q.Topics[0].Partitions[0]
		if q.ReplicaID != -1 || q.ReplicaEpoch != -1 || q.SessionID != 0 || q.SessionEpoch != -1 || q.Rack != "" ||
			p.CurrentLeaderEpoch != -1 || p.LastFetchedEpoch != -1 || p.HighWatermark != math.MaxInt64 {
			t.Errorf("v%d: %+v", v, q)
		}
	}
}

// memFile is a file that only reads.
type memFile struct {
	disk.File
	p []byte
}

func (f memFile) Path() string { return "mem" }

func (f memFile) ReadAt(p []byte, pos int64) (int, error) {
	if n := copy(p, f.p[min(pos, int64(len(f.p))):]); n < len(p) {
		return n, io.EOF
	}
	return len(p), nil
}

func (f memFile) SendTo(c net.Conn, pos, n int64) (int64, error) {
	m, err := c.Write(f.p[pos : pos+n])
	return int64(m), err
}

// capture is a connection that keeps what it is given.
type capture struct {
	net.Conn
	p []byte
}

func (c *capture) Write(p []byte) (int, error) {
	c.p = append(c.p, p...)
	return len(p), nil
}

func TestFetchResponseAgainstKmsg(t *testing.T) {
	f := memFile{p: bytes.Repeat([]byte("0123456789"), 20_000)}
	var resp FetchResponse
	for v := int16(4); v <= 18; v++ {
		resp.Reset()
		resp.ThrottleMs, resp.SessionID = 5, 6
		topic := resp.AddTopic("topic", topicID(1))
		*topic.AddPartition(0) = FetchPartitionResponse{
			HighWatermark: 10, LastStableOffset: 9, LogStartOffset: 1, PreferredReadReplica: -1,
			Ranges: []disk.Range{{File: f, Pos: 3, Len: 10}, {File: f, Pos: 0, Len: 100_000}},
		}
		none := topic.AddPartition(1)
		none.ErrorCode, none.Leader = 6, LeaderHint{Known: true, ID: 2, Epoch: 8}
		none.Diverging = EpochEnd{Known: true, Epoch: 1, EndOffset: 2}
		last := topic.AddPartition(2)
		last.Aborted = []AbortedTxn{{ProducerID: 1, FirstOffset: 2}}
		last.Ranges = []disk.Range{{File: f, Pos: 5, Len: 1}}
		resp.AddTopic("empty", topicID(2))
		resp.Endpoints = append(resp.Endpoints, Endpoint{ID: 2, Host: "h", Port: 3})

		r := frame.New()
		resp.Reply(r, Header{Key: KeyFetch, Version: v, CorrelationID: 42})
		var c capture
		if err := r.Send(&c, frame.Options{}); err != nil {
			t.Fatal(err)
		}
		wire := c.p
		if int64(len(wire)) != r.Len()+4 {
			t.Errorf("v%d: %d bytes sent, length says %d", v, len(wire), r.Len())
		}
		r.Release()
		head := 8
		if v >= 12 {
			head++
		}
		k := kmsg.NewPtrFetchResponse()
		k.Version = v
		if err := k.ReadFrom(wire[head:]); err != nil {
			t.Fatalf("v%d: %v", v, err)
		}
		if !bytes.Equal(k.AppendTo(nil), wire[head:]) {
			t.Errorf("v%d: kmsg writes it differently", v)
		}
		want := append(append([]byte{}, f.p[3:13]...), f.p[:100_000]...)
		if kp := k.Topics[0].Partitions; !bytes.Equal(kp[0].RecordBatches, want) || string(kp[2].RecordBatches) != "5" || len(kp[1].RecordBatches) != 0 {
			t.Errorf("v%d: records are not those of the ranges", v)
		}
	}
}
