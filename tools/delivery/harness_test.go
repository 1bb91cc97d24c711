// Package delivery shows what Kafka's delivery semantics promise, by killing clients, brokers and connections
// at the worst moment and counting: at most once loses and never doubles, at least once doubles and never
// loses, an idempotent producer does neither.
package delivery

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

var seed = flag.Uint64("seed", 0, "seed of the moments; 0: from the clock")

func TestMain(m *testing.M) {
	proc.RunRole(map[string]func([]byte) error{"consume": consume, "produce": produce})
	flag.Parse()
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

func startBroker(t *testing.T) *proc.Broker {
	t.Helper()
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["group.min.session.timeout.ms"] = "100"
	b.Start()
	return b
}

// fill puts records 0, 1, 2, … into a fresh topic of three partitions.
func fill(t *testing.T, addr, topic string, records int) {
	t.Helper()
	proc.CreateTopic(t, addr, topic, partitionCount)
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var rs []*kgo.Record
	for i := range records {
		rs = append(rs, &kgo.Record{Key: fmt.Append(nil, i), Value: fmt.Append(nil, i)})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := cl.ProduceSync(ctx, rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

const partitionCount = 3

// endMark is the record that stands behind all others of a partition.
func endMark(partition int) string { return fmt.Sprintf("end-%d", partition) }

func markEnds(t *testing.T, addr, topic string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	for p := range partitionCount {
		r := &kgo.Record{Topic: topic, Partition: int32(p), Value: []byte(endMark(p))}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}
