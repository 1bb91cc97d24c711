package brokerbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/bench/rawload"
	"platter/bench/stats"
)

// refillPoll is how often the in-sync set is looked at.
const refillPoll = 10 * time.Millisecond

// assigned makes the topic, of one partition with these replicas, and waits until all are in sync.
func (t *trio) assigned(ctx context.Context, replicas []int32) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	q := kmsg.NewCreateTopicsRequestTopic()
	q.Topic, q.NumPartitions, q.ReplicationFactor = replicationTopic, -1, -1
	a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	a.Replicas = replicas
	q.ReplicaAssignment = append(q.ReplicaAssignment, a)
	max := "104857600"
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = "max.message.bytes", &max
	q.Configs = append(q.Configs, c)
	req.Topics = append(req.Topics, q)
	resp, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	if code := resp.Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("creating the topic: code %d", code)
	}
	return t.inSync(ctx, len(replicas))
}

// inSync waits until so many replicas are in sync.
func (t *trio) inSync(ctx context.Context, count int) error {
	for {
		d, err := t.partition(ctx)
		if err == nil && d.Leader == 0 && len(d.ISR) == count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the in-sync set is %v, not of %d: %w", d.ISR, count, ctx.Err())
		case <-time.After(refillPoll):
		}
	}
}

func (t *trio) partition(ctx context.Context) (kadm.PartitionDetail, error) {
	topics, err := t.admin.ListTopics(ctx, replicationTopic)
	if err != nil {
		return kadm.PartitionDetail{}, err
	}
	return topics[replicationTopic].Partitions[0], nil
}

// refills takes the last broker's disk away, and measures until its replica is in sync again.
func (t *trio) refills(ctx context.Context, res *Replication) error {
	if err := t.topic(ctx, 3); err != nil {
		return err
	}
	const batchBytes = 1 << 20
	bytes, send, err := t.load(batchBytes)
	if err != nil {
		return err
	}
	if err := send(); err != nil {
		return err
	}
	b, records, err := rawload.Shape{BatchBytes: batchBytes, RecordBytes: t.o.RecordBytes}.Batch()
	if err != nil {
		return err
	}
	for range t.o.Runs {
		s, err := t.refill(ctx, bytes)
		if err != nil {
			return err
		}
		res.Refills = append(res.Refills, s)
		s, err = t.brokers[0].measure(func() (int64, error) {
			return rawload.Fetch(t.brokers[0].addr, replicationTopic, 10<<20, bytes, int64(len(b)), records)
		})
		if err != nil {
			return err
		}
		res.Bare = append(res.Bare, s)
	}
	s, err := t.refillBusy(ctx, bytes)
	res.Busy = append(res.Busy, s)
	return err
}

// refillBusy refills while a producer writes a quarter of the log once more, batch by batch.
func (t *trio) refillBusy(ctx context.Context, bytes int64) (stats.Sample, error) {
	b, _, err := rawload.Shape{BatchBytes: 64 << 10, RecordBytes: t.o.RecordBytes}.Batch()
	if err != nil {
		return stats.Sample{}, err
	}
	count := int(bytes / 4 / int64(len(b)))
	sent := make(chan error, 1)
	go func() {
		frames := [][]byte{rawload.ProduceFrame(replicationTopic, 0, 1, b)}
		sent <- rawload.Pipeline(t.brokers[0].addr, frames, count, 1, 0, rawload.CheckProduce)
	}()
	s, err := t.refill(ctx, bytes)
	if sendErr := <-sent; err == nil {
		err = sendErr
	}
	return s, err
}

func (t *trio) refill(ctx context.Context, bytes int64) (stats.Sample, error) {
	const lost = 2
	_ = t.brokers[lost].cmd.Process.Kill()
	_ = t.brokers[lost].cmd.Wait()
	if err := os.RemoveAll(filepath.Join(t.brokerDir(lost), "data")); err != nil {
		return stats.Sample{}, err
	}
	if err := t.inSync(ctx, 2); err != nil {
		return stats.Sample{}, err
	}
	if err := t.start(ctx, lost); err != nil {
		return stats.Sample{}, err
	}
	return t.brokers[lost].measure(func() (int64, error) { return bytes, t.inSync(ctx, 3) })
}
