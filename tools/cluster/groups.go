package cluster

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"platter/coord/cluster"
	coordinates "platter/coord/group"
	"platter/coord/zkclient"
	"platter/tools/history"
)

// Groups are consumer groups at work: their members commit what they have read, and somebody else reads again and
// again what is committed.
type Groups struct {
	history.Commits
	t     testing.TB
	topic string
	stop  context.CancelFunc
	all   sync.WaitGroup

	zookeeper string
	groups    int
}

// commitEvery is the least time between two commits of a member.
const commitEvery = 100 * time.Millisecond

// OffsetsPartitions is what offsets.topic.num.partitions has to be on the brokers.
const OffsetsPartitions = 4

// StartGroups starts so many members of each group. Stop ends them.
func StartGroups(t testing.TB, bootstrap, zookeeper, topic string, members map[string]int) *Groups {
	ctx, stop := context.WithCancel(context.Background())
	g := &Groups{t: t, topic: topic, stop: stop, zookeeper: zookeeper, groups: len(members)}
	seeds := strings.Split(bootstrap, ",")
	for group, n := range members {
		for range n {
			g.all.Go(func() { g.member(ctx, seeds, group) })
		}
		g.all.Go(func() { g.watch(ctx, seeds, group) })
	}
	return g
}

// Stop ends all members and watchers.
func (g *Groups) Stop() {
	g.stop()
	g.all.Wait()
}

func (g *Groups) member(ctx context.Context, seeds []string, group string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(g.topic),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(20*time.Second), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		g.t.Error(err)
		return
	}
	defer cl.Close()
	for ctx.Err() == nil {
		next := map[int32]kgo.EpochOffset{}
		for begin := time.Now(); ctx.Err() == nil && time.Since(begin) < commitEvery; {
			short, cancel := context.WithTimeout(ctx, commitEvery)
			fs := cl.PollFetches(short)
			cancel()
			for r := range fs.RecordsAll() {
				next[r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
			}
		}
		if len(next) > 0 {
			g.commit(ctx, cl, group, next)
		}
		cl.AllowRebalance()
	}
}

// commit commits once; what fails is committed with what comes next.
func (g *Groups) commit(ctx context.Context, cl *kgo.Client, group string, next map[int32]kgo.EpochOffset) {
	cl.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{g.topic: next},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			if err != nil {
				return
			}
			for _, t := range resp.Topics {
				for _, p := range t.Partitions {
					if p.ErrorCode == 0 {
						g.Acknowledged(history.Committed{Group: group, Partition: p.Partition}, next[p.Partition].Offset)
					}
				}
			}
		})
}

// watch reads what is committed, from the broker that coordinates the group: the leader of its partition, by the
// leader epoch in the coordinator's znode, before the read and after. Another one may not have heard yet that it is
// not the leader any more, and answer with what was committed then: so it is with Kafka, too.
func (g *Groups) watch(ctx context.Context, seeds []string, group string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(20*time.Millisecond), kgo.MaxVersions(kversion.V3_6_0()))
	if err != nil {
		g.t.Error(err)
		return
	}
	defer cl.Close()
	var zk *zkclient.Client
	for !ended(ctx.Done(), commitEvery) {
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		if zk == nil {
			zk, _ = zkclient.Connect(short, zkclient.Config{Servers: []string{g.zookeeper}})
		}
		if zk != nil && g.read(short, cl, zk, group) != nil {
			_ = zk.Close()
			zk = nil
		}
		cancel()
	}
	if zk != nil {
		_ = zk.Close()
	}
}

// read reads once; an error is the coordinator's.
func (g *Groups) read(ctx context.Context, cl *kgo.Client, zk *zkclient.Client, group string) error {
	path := cluster.StatePath("__consumer_offsets", coordinates.PartitionOf(group, OffsetsPartitions))
	state := func() (cluster.State, error) {
		data, _, err := zk.Get(ctx, path, nil)
		if err != nil {
			return cluster.State{}, err
		}
		return cluster.DecodeState(data)
	}
	floor := g.Floor()
	before, err := state()
	if err != nil || before.Leader < 0 {
		return err
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: group}}
	resp, err := cl.Broker(int(before.Leader)).Request(ctx, req)
	if err != nil {
		return nil
	}
	after, err := state()
	if err != nil || after.LeaderEpoch != before.LeaderEpoch {
		return err
	}
	for _, r := range resp.(*kmsg.OffsetFetchResponse).Groups {
		if r.ErrorCode != 0 {
			return nil
		}
		at := map[int32]int64{}
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					return nil
				}
				at[p.Partition] = max(0, p.Offset)
			}
		}
		g.Read(group, at, floor)
	}
	return nil
}

// AwaitWork waits until all groups commit, and what they commit is read.
func (g *Groups) AwaitWork() {
	g.t.Helper()
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(50 * time.Millisecond) {
		busy := map[string]bool{}
		for of := range g.Floor() {
			busy[of.Group] = true
		}
		if _, _, reads := g.Outcome(); len(busy) == g.groups && reads > 0 {
			return
		}
	}
	g.t.Fatal("not in 90 s: all groups commit")
}

// Judge says what went back, and that there was something to see.
func (g *Groups) Judge() {
	bad, acked, reads := g.Outcome()
	for _, what := range bad[:min(20, len(bad))] {
		g.t.Error(what)
	}
	if acked == 0 || reads == 0 {
		g.t.Errorf("%d commits were acknowledged, %d reads answered: the groups were not at work", acked, reads)
	}
	g.t.Logf("groups: %d offsets committed, %d reads of them", acked, reads)
}
