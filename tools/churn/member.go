package churn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config says what a member is and does.
type Config struct {
	Addr        string
	Group       string
	Topic       string
	Instance    string // group.instance.id; "": a dynamic member
	Cooperative bool
	Session     time.Duration
	Rebalance   time.Duration
	Work        time.Duration // what passes between processing and committing
}

// Run is a member of a group until ctx ends; then it leaves, unless it is a static one. It processes records,
// which is to report them, and commits what it has processed. report is called from one goroutine at a time.
// An error is final: the member was fenced, for example.
func Run(ctx context.Context, cfg Config, report func(Event)) error {
	m := &memberRun{cfg: cfg, to: report}
	if err := m.connect(); err != nil {
		return err
	}
	defer m.cl.CloseAllowingRebalance()
	for ctx.Err() == nil {
		fs := m.cl.PollRecords(ctx, 100)
		for _, e := range fs.Errors() {
			if errors.Is(e.Err, kerr.FencedInstanceID) {
				return e.Err
			}
		}
		m.process(fs)
		m.cl.AllowRebalance()
	}
	return nil
}

type memberRun struct {
	cfg Config
	cl  *kgo.Client
	mu  sync.Mutex
	to  func(Event)
}

// report returns when the event is told: what is committed afterwards was certainly reported before.
func (m *memberRun) report(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to(e)
}

func (m *memberRun) connect() (err error) {
	var balancer kgo.GroupBalancer = kgo.RoundRobinBalancer()
	if m.cfg.Cooperative {
		balancer = kgo.CooperativeStickyBalancer()
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(m.cfg.Addr), kgo.ConsumerGroup(m.cfg.Group), kgo.ConsumeTopics(m.cfg.Topic),
		kgo.Balancers(&witness{balancer, m}),
		kgo.SessionTimeout(m.cfg.Session), kgo.HeartbeatInterval(m.cfg.Session / 10), kgo.RebalanceTimeout(m.cfg.Rebalance),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxWait(200 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond), kgo.DialTimeout(2 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}
	if m.cfg.Instance != "" {
		opts = append(opts, kgo.InstanceID(m.cfg.Instance))
	}
	m.cl, err = kgo.NewClient(opts...)
	return err
}

// witness reports each assignment exactly as SyncGroup brought it.
type witness struct {
	kgo.GroupBalancer
	m *memberRun
}

func (w *witness) ParseSyncAssignment(text []byte) (map[string][]int32, error) {
	parts, err := w.GroupBalancer.ParseSyncAssignment(text)
	if err == nil {
		id, generation := w.m.cl.GroupMetadata()
		w.m.report(Event{Kind: Assigned, Member: w.m.name(id), Generation: generation, Partitions: parts[w.m.cfg.Topic]})
	}
	return parts, err
}

func (m *memberRun) name(id string) string {
	if m.cfg.Instance != "" {
		return m.cfg.Instance
	}
	return id
}

// process reports the records, then commits them. That a commit is refused is how a group tells a member that
// it has gone on without it.
func (m *memberRun) process(fs kgo.Fetches) {
	offsets := map[int32]kgo.EpochOffset{}
	fs.EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) == 0 {
			return
		}
		first, last := p.Records[0], p.Records[len(p.Records)-1]
		m.report(Event{Kind: Processed, Partition: p.Partition, From: first.Offset, To: last.Offset + 1})
		offsets[p.Partition] = kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}
	})
	if len(offsets) == 0 {
		return
	}
	time.Sleep(m.cfg.Work)
	// Not the member's ctx: what was processed is committed before it leaves.
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.Rebalance)
	defer cancel()
	m.cl.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{m.cfg.Topic: offsets}, m.committed)
}

func (m *memberRun) committed(_ *kgo.Client, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
	e := Event{Member: m.name(req.MemberID), Generation: req.Generation}
	if err != nil {
		e.Kind, e.Cause = Refused, err.Error()
		m.report(e)
		return
	}
	next := map[int32]int64{}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			next[p.Partition] = p.Offset
		}
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			e.Kind, e.Partition, e.To, e.Cause = Committed, p.Partition, next[p.Partition], ""
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				e.Kind, e.Cause = Refused, fmt.Sprint(err)
			}
			m.report(e)
		}
	}
}
