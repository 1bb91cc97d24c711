package cluster

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

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
}

// commitEvery is the least time between two commits of a member.
const commitEvery = 100 * time.Millisecond

// StartGroups starts so many members of each group. Stop ends them.
func StartGroups(t testing.TB, bootstrap, topic string, members map[string]int) *Groups {
	ctx, stop := context.WithCancel(context.Background())
	g := &Groups{t: t, topic: topic, stop: stop}
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

// watch reads what is committed.
func (g *Groups) watch(ctx context.Context, seeds []string, group string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		g.t.Error(err)
		return
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for !ended(ctx.Done(), commitEvery) {
		floor := g.Floor()
		got, err := adm.FetchOffsets(ctx, group)
		if err != nil || got.Error() != nil {
			continue
		}
		at := map[int32]int64{}
		for _, o := range got.Sorted() {
			if o.Topic == g.topic {
				at[o.Partition] = max(0, o.At)
			}
		}
		g.Read(group, at, floor)
	}
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
