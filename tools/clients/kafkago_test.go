package clients

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

var kafkaGoCodecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

// byNumber puts record i on partition i modulo their number, as the others do.
type byNumber struct{}

func (byNumber) Balance(m kafka.Message, partitions ...int) int {
	var i int
	_, _ = fmt.Sscanf(string(m.Key), "k%d", &i)
	return partitions[i%len(partitions)]
}

// TestKafkaGo: Writer, Reader with a group, and Conn.
func TestKafkaGo(t *testing.T) {
	b := broker(t, nil)
	for _, codec := range codecs {
		t.Run(codec, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
			defer cancel()
			topic := "kafka-go-" + codec
			conn, err := kafka.DialContext(ctx, "tcp", b.Addr())
			must(t, err)
			defer conn.Close()
			must(t, conn.CreateTopics(kafka.TopicConfig{Topic: topic, NumPartitions: partitionCount, ReplicationFactor: 1}))
			kafkaGoWrite(t, ctx, b.Addr(), topic, kafkaGoCodecs[codec], 0, recordCount)
			wantRecords(t, kafkaGoGroup(t, ctx, b.Addr(), topic, recordCount), 0, recordCount)
			kafkaGoWrite(t, ctx, b.Addr(), topic, kafkaGoCodecs[codec], recordCount, moreCount)
			wantRecords(t, kafkaGoGroup(t, ctx, b.Addr(), topic, moreCount), recordCount, moreCount)
			kafkaGoConn(t, ctx, b.Addr(), topic)
		})
	}
}

func kafkaGoWrite(t *testing.T, ctx context.Context, addr, topic string, codec kafka.Compression, first, count int) {
	t.Helper()
	// The transport that writers share by default remembers for seconds which topics there are.
	own := &kafka.Transport{}
	defer own.CloseIdleConnections()
	w := &kafka.Writer{Addr: kafka.TCP(addr), Topic: topic, Balancer: byNumber{}, Compression: codec, RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond, Transport: own}
	defer w.Close()
	var ms []kafka.Message
	for i := first; i < first+count; i++ {
		ms = append(ms, kafka.Message{
			Key: fmt.Appendf(nil, "k%d", i), Value: []byte(valueOf(i)), Time: startTime.Add(time.Duration(i) * time.Second),
			Headers: []kafka.Header{{Key: "h", Value: []byte("1")}},
		})
	}
	must(t, w.WriteMessages(ctx, ms...))
}

func kafkaGoGroup(t *testing.T, ctx context.Context, addr, topic string, count int) []seen {
	t.Helper()
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{addr}, Topic: topic, GroupID: "g-" + topic, StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
	})
	defer r.Close()
	var got []seen
	for len(got) < count {
		m, err := r.FetchMessage(ctx)
		if err != nil {
			t.Fatalf("after %d of %d records: %v", len(got), count, err)
		}
		got = append(got, seen{int32(m.Partition), m.Offset, string(m.Key), string(m.Value)})
		must(t, r.CommitMessages(ctx, m))
	}
	return got
}

// kafkaGoConn seeks and looks up by time on a raw connection to a partition's leader.
func kafkaGoConn(t *testing.T, ctx context.Context, addr, topic string) {
	t.Helper()
	c, err := kafka.DialLeader(ctx, "tcp", addr, topic, 0)
	must(t, err)
	defer c.Close()
	_, err = c.Seek(5, kafka.SeekAbsolute)
	must(t, err)
	m, err := c.ReadMessage(1 << 20)
	must(t, err)
	if m.Offset != 5 {
		t.Errorf("seek to 5 gave %d", m.Offset)
	}
	one, err := kafka.DialLeader(ctx, "tcp", addr, topic, 1)
	must(t, err)
	defer one.Close()
	at, err := one.ReadOffset(startTime.Add(7*time.Second - time.Millisecond))
	must(t, err)
	if at != 3 {
		t.Errorf("the time look-up gave %d, want 3", at)
	}
}
