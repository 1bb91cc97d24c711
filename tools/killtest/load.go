// Package killtest puts a real broker process under load, kills it at random moments, and lets the
// history checker decide whether anything that was acknowledged is lost, doubled or out of order.
package killtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/history"
)

// Load is a set of idempotent producers that number their records and remember what was acknowledged.
type Load struct {
	plan    Plan
	clients []*kgo.Client
	stop    context.CancelFunc
	senders sync.WaitGroup

	mu     sync.Mutex
	sent   []history.Record
	failed []error

	acknowledged int
}

const valueHeaderBytes = 4 + 8

// Plan is what a load is to be.
type Plan struct {
	Addr       string // one or more addresses, separated by commas
	Topic      string // must exist
	Partitions int32
	Producers  int
	Seed       uint64
	ValueBytes int // at most so much besides a header; 0: 2000
	PerSecond  int // records of each producer; 0: as fast as it goes
}

// StartLoad starts producers against addr, one or more addresses separated by commas; the topic must exist.
func StartLoad(addr, topic string, partitions int32, producers int, seed uint64) (*Load, error) {
	return Plan{Addr: addr, Topic: topic, Partitions: partitions, Producers: producers, Seed: seed}.Start()
}

// Start starts the producers.
func (plan Plan) Start() (*Load, error) {
	if plan.ValueBytes == 0 {
		plan.ValueBytes = 2000
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Load{plan: plan, stop: stop}
	for p := range plan.Producers {
		cl, err := kgo.NewClient(
			kgo.SeedBrokers(strings.Split(plan.Addr, ",")...),
			kgo.DefaultProduceTopic(plan.Topic),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.RequiredAcks(kgo.AllISRAcks()),
			kgo.StopProducerOnDataLossDetected(),
			kgo.MaxBufferedRecords(500),
			kgo.MetadataMinAge(20*time.Millisecond),
			kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }),
			kgo.DialTimeout(time.Second),
			kgo.ProducerBatchCompression(kgo.NoCompression()),
		)
		if err != nil {
			stop()
			return nil, err
		}
		l.clients = append(l.clients, cl)
		rnd := rand.New(rand.NewPCG(plan.Seed, uint64(p)))
		l.senders.Go(func() { l.send(ctx, cl, int32(p), rnd) })
	}
	return l, nil
}

// send produces until ctx ends; kgo keeps each partition's records in the order of the Produce calls.
func (l *Load) send(ctx context.Context, cl *kgo.Client, producer int32, rnd *rand.Rand) {
	next := make([]int64, l.plan.Partitions)
	for ctx.Err() == nil {
		partition := rnd.Int32N(l.plan.Partitions)
		seq := next[partition]
		next[partition]++
		value := make([]byte, valueHeaderBytes+rnd.IntN(l.plan.ValueBytes))
		binary.BigEndian.PutUint32(value, uint32(producer))
		binary.BigEndian.PutUint64(value[4:], uint64(seq))
		at := l.note(history.Record{Partition: partition, Producer: producer, Sequence: seq, Offset: -1})
		// Not ctx: a record that was given to the client is delivered, however often the broker dies.
		cl.Produce(context.Background(), &kgo.Record{Partition: partition, Value: value}, func(r *kgo.Record, err error) {
			l.outcome(at, r, err)
		})
		switch n := l.plan.PerSecond; {
		case n > 0:
			time.Sleep(time.Duration(rnd.Int64N(2 * int64(time.Second) / int64(n))))
		case rnd.IntN(64) == 0:
			time.Sleep(time.Millisecond)
		}
	}
}

func (l *Load) note(r history.Record) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, r)
	return len(l.sent) - 1
}

func (l *Load) outcome(at int, r *kgo.Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, err)
		return
	}
	l.sent[at].Offset = r.Offset
	l.acknowledged++
}

// Stop ends the senders and waits until every record has its outcome, or ctx ends.
func (l *Load) Stop(ctx context.Context) error {
	l.stop()
	l.senders.Wait()
	for _, cl := range l.clients {
		if err := cl.Flush(ctx); err != nil {
			return fmt.Errorf("records without an outcome: %w", err)
		}
	}
	l.Abandon()
	return nil
}

// Abandon closes the clients without waiting for what is under way.
func (l *Load) Abandon() {
	l.stop()
	l.senders.Wait()
	for _, cl := range l.clients {
		cl.Close()
	}
	l.clients = nil
}

// Acknowledged is how many records have been so far.
func (l *Load) Acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged
}

// Sent is all records that were given to the clients, and the errors of those that failed for good.
func (l *Load) Sent() ([]history.Record, []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.failed
}

// ReadAll reads the topic from its start to the ends that the broker reports.
func ReadAll(ctx context.Context, addr, topic string) ([]history.Record, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(addr, ",")...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ends, err := endsOf(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return nil, err
	}
	var left int64
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	var out []history.Record
	for left > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return out, fmt.Errorf("after %d records, %d to come: %w", len(out), left, err)
		}
		for r := range fs.RecordsAll() {
			rec, err := decode(r)
			if err != nil {
				return out, err
			}
			out = append(out, rec)
			left--
		}
	}
	return out, nil
}

// endsOf asks until every partition's leader says where it ends: one that has just begun to lead does not know it yet.
func endsOf(ctx context.Context, adm *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	for {
		ends, err := adm.ListEndOffsets(ctx, topic)
		if err == nil {
			err = ends.Error()
		}
		if err == nil {
			return ends, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("where %s ends: %w", topic, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func decode(r *kgo.Record) (history.Record, error) {
	if len(r.Value) < valueHeaderBytes {
		return history.Record{}, fmt.Errorf("record at %d/%d has %d bytes", r.Partition, r.Offset, len(r.Value))
	}
	return history.Record{
		Partition: r.Partition,
		Producer:  int32(binary.BigEndian.Uint32(r.Value)),
		Sequence:  int64(binary.BigEndian.Uint64(r.Value[4:])),
		Offset:    r.Offset,
	}, nil
}
