package brokerbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	if err := t.create(ctx, replicationTopic, replicas); err != nil {
		return err
	}
	return t.inSync(ctx, len(replicas))
}

// create makes a topic with these replicas of each partition.
func (t *trio) create(ctx context.Context, topic string, partitions ...[]int32) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	q := kmsg.NewCreateTopicsRequestTopic()
	q.Topic, q.NumPartitions, q.ReplicationFactor = topic, -1, -1
	for i, replicas := range partitions {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), replicas
		q.ReplicaAssignment = append(q.ReplicaAssignment, a)
	}
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
		return fmt.Errorf("creating topic %s: code %d", topic, code)
	}
	return nil
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
	bytes, send, err := t.load(1 << 20)
	if err != nil {
		return err
	}
	if err := send(); err != nil {
		return err
	}
	for i := range t.o.Runs {
		for j := range 2 {
			if (i+j)%2 == 0 {
				s, err := t.refill(ctx, bytes)
				if err != nil {
					return err
				}
				res.Refills = append(res.Refills, s)
				continue
			}
			s, err := t.bareRefill(bytes)
			if err != nil {
				return err
			}
			res.Bare = append(res.Bare, s)
		}
		fmt.Fprintf(t.o.Progress, "\rlost disks: pair %d of %d  ", i+1, t.o.Runs)
	}
	fmt.Fprint(t.o.Progress, "\r\x1b[K")
	return t.refillsBusy(ctx, res, bytes)
}

// bareRefill moves as many bytes of the leader's log as a bare program can: sendfile from the segment into a socket, and
// whoever reads that writes them to a file.
func (t *trio) bareRefill(bytes int64) (s stats.Sample, err error) {
	segment := filepath.Join(t.brokerDir(0), "data", replicationTopic+"-0", "00000000000000000000.log")
	info, err := os.Stat(segment)
	if err != nil {
		return s, err
	}
	bare, err := startBare(t.o.Exe, "--source", segment)
	if err != nil {
		return s, err
	}
	defer bare.stop()
	path := filepath.Join(t.dir, "bare-refill")
	f, err := os.Create(path)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	self := &child{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
	n := min(bytes, info.Size())
	return self.measure(func() (int64, error) { return n, rawload.Copy(f, bare.addr, n) })
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
