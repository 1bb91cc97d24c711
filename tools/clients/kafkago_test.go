package clients

import (
	"context"
	"errors"
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
	b.through(func(t *testing.T, suffix string) {
		for _, codec := range codecs {
			t.Run(codec+suffix, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
				defer cancel()
				k := &kafkaGo{t: t, ctx: ctx, addr: seeds(b.Addr()), topic: "kafka-go-" + codec + suffix, read: map[string]bool{}}
				k.create()
				k.write(kafkaGoCodecs[codec], 0, recordCount)
				wantRecords(t, k.group(recordCount), 0, recordCount)
				k.write(kafkaGoCodecs[codec], recordCount, moreCount)
				wantRecords(t, k.group(moreCount), recordCount, moreCount)
				k.lookUp()
			})
		}
	})
}

type kafkaGo struct {
	t     *testing.T
	ctx   context.Context
	addr  []string
	topic string
	read  map[string]bool // keys that the group has read before
}

// write sends by a Writer as it is made by default, but for what the scenario wants.
func (k *kafkaGo) write(codec kafka.Compression, first, count int) {
	k.t.Helper()
	// The transport that writers share by default remembers for seconds which topics there are.
	own := &kafka.Transport{}
	defer own.CloseIdleConnections()
	w := &kafka.Writer{Addr: kafka.TCP(k.addr...), Topic: k.topic, Balancer: byNumber{}, Compression: codec, RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond, Transport: own}
	defer w.Close()
	var ms []kafka.Message
	for i := first; i < first+count; i++ {
		ms = append(ms, kafka.Message{
			Key: fmt.Appendf(nil, "k%d", i), Value: []byte(valueOf(i)), Time: startTime.Add(time.Duration(i) * time.Second),
			Headers: []kafka.Header{{Key: "h", Value: []byte("1")}},
		})
	}
	must(k.t, w.WriteMessages(k.ctx, ms...))
}

func (k *kafkaGo) group(count int) []seen {
	k.t.Helper()
	session := 30 * time.Second // its default
	if rolled() {
		session = shortSession
	}
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: k.addr, Topic: k.topic, GroupID: "g-" + k.topic, StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
		SessionTimeout: session,
	})
	defer r.Close()
	var got []seen
	for len(got) < count {
		m, err := r.FetchMessage(k.ctx)
		if err != nil {
			k.t.Fatalf("after %d of %d records: %v", len(got), count, err)
		}
		if k.read[string(m.Key)] {
			k.t.Logf("%s-%d: offset %d comes again", m.Topic, m.Partition, m.Offset)
		} else {
			k.read[string(m.Key)] = true
			got = append(got, seen{int32(m.Partition), m.Offset, string(m.Key), string(m.Value)})
		}
		if err := r.CommitMessages(k.ctx, m); err != nil {
			// It tries again only over the connection that it has, to what was the coordinator.
			k.again(err)
		}
	}
	return got
}

// again notes what kafka-go leaves to the application: nothing, while no broker is restarted.
func (k *kafkaGo) again(err error) {
	k.t.Helper()
	if !rolled() {
		k.t.Fatal(err)
	}
	k.t.Logf("again after: %v", err)
}

// conn does work on a raw connection, which has no retries of its own: after an error it dials the next address.
func (k *kafkaGo) conn(dial func(addr string) (*kafka.Conn, error), work func(*kafka.Conn) error) {
	k.t.Helper()
	for i := 0; ; i++ {
		c, err := dial(k.addr[i%len(k.addr)])
		if err == nil {
			err = work(c)
			c.Close()
		}
		if err == nil || i > 0 && errors.Is(err, kafka.TopicAlreadyExists) {
			return
		}
		k.again(err)
		select {
		case <-k.ctx.Done():
			k.t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (k *kafkaGo) create() {
	k.t.Helper()
	k.conn(func(addr string) (*kafka.Conn, error) { return kafka.DialContext(k.ctx, "tcp", addr) }, func(c *kafka.Conn) error {
		return c.CreateTopics(kafka.TopicConfig{Topic: k.topic, NumPartitions: partitionCount, ReplicationFactor: int(replicas())})
	})
}

// lookUp seeks and looks up by time on a raw connection to a partition's leader.
func (k *kafkaGo) lookUp() {
	k.t.Helper()
	leader := func(partition int) func(string) (*kafka.Conn, error) {
		return func(addr string) (*kafka.Conn, error) {
			return kafka.DialLeader(k.ctx, "tcp", addr, k.topic, partition)
		}
	}
	k.conn(leader(0), func(c *kafka.Conn) error {
		if _, err := c.Seek(5, kafka.SeekAbsolute); err != nil {
			return err
		}
		m, err := c.ReadMessage(1 << 20)
		if err == nil && m.Offset != 5 {
			k.t.Errorf("seek to 5 gave %d", m.Offset)
		}
		return err
	})
	k.conn(leader(1), func(c *kafka.Conn) error {
		at, err := c.ReadOffset(startTime.Add(7*time.Second - time.Millisecond))
		if err == nil && at != 3 && !(rolled() && at > 3) {
			k.t.Errorf("the time look-up gave %d, want 3", at)
		}
		return err
	})
}
