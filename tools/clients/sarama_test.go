package clients

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

// TestSarama at the version that it assumes by default in old programs, and at its newest.
func TestSarama(t *testing.T) {
	b := broker(t, nil)
	b.through(func(t *testing.T, suffix string) {
		// Its own default is 2.1 by now; 1.0 is what old programs name.
		for _, version := range []sarama.KafkaVersion{sarama.V1_0_0_0, sarama.DefaultVersion, sarama.MaxVersion} {
			for _, codec := range codecs {
				if codec == "zstd" && !version.IsAtLeast(sarama.V2_1_0_0) {
					continue // Sarama refuses it by itself below 2.1
				}
				t.Run(version.String()+"/"+codec+suffix, func(t *testing.T) {
					c := sarama.NewConfig()
					c.Version = version
					c.Producer.Compression, c.Producer.RequiredAcks = saramaCodecs[codec], sarama.WaitForAll
					c.Producer.Return.Successes, c.Producer.Partitioner = true, sarama.NewManualPartitioner
					c.Consumer.Offsets.Initial, c.Consumer.Offsets.AutoCommit.Enable = sarama.OffsetOldest, false
					c.Consumer.MaxWaitTime = 100 * time.Millisecond
					s := saramaRun{t: t, addr: seeds(b.Addr()), config: c, read: map[string]bool{}, topic: "sarama-" + version.String() + "-" + codec + suffix}
					s.all()
				})
			}
		}
	})
}

type saramaRun struct {
	t      *testing.T
	addr   []string
	config *sarama.Config
	topic  string
	read   map[string]bool // keys that the group has read before
}

func (s *saramaRun) all() {
	t := s.t
	admin, err := sarama.NewClusterAdmin(s.addr, s.config)
	must(t, err)
	defer admin.Close()
	must(t, admin.CreateTopic(s.topic, &sarama.TopicDetail{NumPartitions: partitionCount, ReplicationFactor: replicas()}, false))
	s.produce(0, recordCount)
	wantRecords(t, s.group("g-"+s.topic, recordCount), 0, recordCount)
	s.produce(recordCount, moreCount)
	wantRecords(t, s.group("g-"+s.topic, moreCount), recordCount, moreCount)

	client, err := sarama.NewClient(s.addr, s.config)
	must(t, err)
	defer client.Close()
	var at int64
	for tries := 0; ; tries++ {
		// It asks twice by itself, without a pause.
		if at, err = client.GetOffset(s.topic, 1, startTime.Add(7*time.Second-time.Millisecond).UnixMilli()); err == nil {
			break
		}
		if !rolled() || tries == 100 {
			t.Fatal(err)
		}
		t.Logf("again after: %v", err)
		time.Sleep(100 * time.Millisecond)
	}
	if at != 3 && !rolled() || at < 3 {
		t.Errorf("the time look-up gave %d, want 3", at)
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	must(t, err)
	part, err := consumer.ConsumePartition(s.topic, 0, 5)
	must(t, err)
	defer part.Close()
	select {
	case m := <-part.Messages():
		if m.Offset != 5 {
			t.Errorf("seek to 5 gave %d", m.Offset)
		}
	case <-time.After(90 * time.Second):
		t.Error("nothing came after a seek")
	}
}

func (s *saramaRun) produce(first, count int) {
	p, err := sarama.NewSyncProducer(s.addr, s.config)
	must(s.t, err)
	defer p.Close()
	var ms []*sarama.ProducerMessage
	for i := first; i < first+count; i++ {
		ms = append(ms, &sarama.ProducerMessage{
			Topic: s.topic, Partition: int32(i % partitionCount), Timestamp: startTime.Add(time.Duration(i) * time.Second),
			Key: sarama.StringEncoder(fmt.Sprint("k", i)), Value: sarama.StringEncoder(valueOf(i)),
			Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte("1")}},
		})
	}
	must(s.t, p.SendMessages(ms))
}

// group reads count records as the only member of a group, marks and commits them, and leaves.
func (s *saramaRun) group(name string, count int) []seen {
	g, err := sarama.NewConsumerGroup(s.addr, name, s.config)
	must(s.t, err)
	defer g.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	h := &saramaHandler{t: s.t, want: count, done: cancel, read: s.read}
	for ctx.Err() == nil {
		if err := g.Consume(ctx, []string{s.topic}, h); err != nil && ctx.Err() == nil {
			s.t.Fatal(err)
		}
	}
	return h.got
}

type saramaHandler struct {
	mu   sync.Mutex
	got  []seen
	want int
	done func()
	t    *testing.T
	read map[string]bool
}

func (h *saramaHandler) Setup(sarama.ConsumerGroupSession) error { return nil }

func (h *saramaHandler) Cleanup(s sarama.ConsumerGroupSession) error {
	s.Commit()
	return nil
}

func (h *saramaHandler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		h.mu.Lock()
		s.MarkMessage(m, "")
		if h.read[string(m.Key)] { // its last commit may not have come through: at least once is what a group promises
			h.t.Logf("%s-%d: offset %d comes again", m.Topic, m.Partition, m.Offset)
			h.mu.Unlock()
			continue
		}
		h.read[string(m.Key)] = true
		h.got = append(h.got, seen{m.Partition, m.Offset, string(m.Key), string(m.Value)})
		if len(h.got) == h.want {
			h.done()
		}
		h.mu.Unlock()
	}
	return nil
}
