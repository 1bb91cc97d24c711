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
	for ctx.Err() == nil {
		if err := m.session(ctx); !errors.Is(err, errStale) {
			return err
		}
	}
	return nil
}

// errStale: the member was thrown out of the group and has come in again under another id, and its client goes on
// with the partitions that it had before, from where it was, as if nothing had happened. (A cooperative franz-go
// client does, when it is JoinGroup that tells it.) No broker can tell its commits from good ones, so the member
// begins anew.
var errStale = errors.New("the member has another id and its old partitions")

type memberRun struct {
	cfg Config

	reporting sync.Mutex
	to        func(Event)

	mu    sync.Mutex
	cl    *kgo.Client
	id    string // as which the last assignment came
	clean bool   // the client has given up what it had since then
	stale bool
}

// session is one client's life.
func (m *memberRun) session(ctx context.Context) error {
	cl, err := m.connect()
	if err != nil {
		return err
	}
	defer cl.CloseAllowingRebalance()
	for ctx.Err() == nil {
		fs := cl.PollRecords(ctx, 100)
		for _, e := range fs.Errors() {
			if errors.Is(e.Err, kerr.FencedInstanceID) {
				return e.Err
			}
		}
		m.process(cl, fs)
		cl.AllowRebalance()
		if m.isStale() {
			return errStale
		}
	}
	return nil
}

// connect makes a client. It begins to join at once, so what it reports must find m ready.
func (m *memberRun) connect() (cl *kgo.Client, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id, m.clean, m.stale = "", false, false
	m.cl, err = kgo.NewClient(m.options()...)
	return m.cl, err
}

// report returns when the event is told: what is committed afterwards was certainly reported before.
func (m *memberRun) report(e Event) {
	m.reporting.Lock()
	defer m.reporting.Unlock()
	m.to(e)
}

func (m *memberRun) options() []kgo.Opt {
	var balancer kgo.GroupBalancer = kgo.RoundRobinBalancer()
	if m.cfg.Cooperative {
		balancer = kgo.CooperativeStickyBalancer()
	}
	nothing := func(context.Context, *kgo.Client, map[string][]int32) {}
	opts := []kgo.Opt{
		kgo.SeedBrokers(m.cfg.Addr), kgo.ConsumerGroup(m.cfg.Group), kgo.ConsumeTopics(m.cfg.Topic),
		kgo.Balancers(&witness{balancer, m}),
		kgo.SessionTimeout(m.cfg.Session), kgo.HeartbeatInterval(m.cfg.Session / 10), kgo.RebalanceTimeout(m.cfg.Rebalance),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		// Callbacks, even if they do nothing, make a rebalance wait for the records under way.
		kgo.BlockRebalanceOnPoll(), kgo.OnPartitionsAssigned(nothing), kgo.OnPartitionsLost(m.lost), kgo.OnPartitionsRevoked(m.revoked),
		kgo.FetchMaxWait(200 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond), kgo.DialTimeout(2 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}
	if m.cfg.Instance != "" {
		opts = append(opts, kgo.InstanceID(m.cfg.Instance))
	}
	return opts
}

func (m *memberRun) lost(context.Context, *kgo.Client, map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clean = true
}

// revoked: an eager member gives up all that it has before it joins again.
func (m *memberRun) revoked(ctx context.Context, cl *kgo.Client, parts map[string][]int32) {
	if !m.cfg.Cooperative {
		m.lost(ctx, cl, parts)
	}
}

func (m *memberRun) isStale() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stale
}

// beforeCommit lets a commit go if it is made as the member that has the partitions.
func (m *memberRun) beforeCommit(req *kmsg.OffsetCommitRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stale || req.MemberID != m.id {
		return errStale
	}
	return nil
}

// witness reports each assignment exactly as SyncGroup brought it.
type witness struct {
	kgo.GroupBalancer
	m *memberRun
}

func (w *witness) ParseSyncAssignment(text []byte) (map[string][]int32, error) {
	parts, err := w.GroupBalancer.ParseSyncAssignment(text)
	if err == nil {
		id, generation := w.m.assigned()
		w.m.report(Event{Kind: Assigned, Member: w.m.name(id), Generation: generation, Partitions: parts[w.m.cfg.Topic]})
	}
	return parts, err
}

// assigned says as whom, and in which generation, the assignment has come.
func (m *memberRun) assigned() (string, int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, generation := m.cl.GroupMetadata()
	m.stale = m.stale || m.id != "" && m.id != id && !m.clean
	m.id, m.clean = id, false
	return id, generation
}

func (m *memberRun) name(id string) string {
	if m.cfg.Instance != "" {
		return m.cfg.Instance
	}
	return id
}

// process reports the records, then commits them. That a commit is refused is how a group tells a member that
// it has gone on without it.
func (m *memberRun) process(cl *kgo.Client, fs kgo.Fetches) {
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
	ctx = kgo.PreCommitFnContext(ctx, m.beforeCommit)
	cl.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{m.cfg.Topic: offsets}, m.committed)
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
