package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

const (
	groupKillsMax  = 25 // of the -kills
	committerCount = 6
	memberCount    = 3
)

// commits is what was committed and acknowledged, by group and partition.
type commits struct {
	mu    sync.Mutex
	tried map[string]int64
	acked map[string]int64
	fails []string
}

func newCommits() *commits { return &commits{tried: map[string]int64{}, acked: map[string]int64{}} }

func commitKey(group string, partition int32) string { return fmt.Sprintf("%s/%d", group, partition) }

func (c *commits) set(in map[string]int64, key string, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in[key] = max(in[key], offset)
}

// floor is what must not be lost from now on.
func (c *commits) floor() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int64{}
	for k, v := range c.acked {
		out[k] = v
	}
	return out
}

// check holds what the broker has against what it had acknowledged before.
func (c *commits) check(when string, floor map[string]int64, found kadm.OffsetResponses, group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range int32(partitionCount) {
		key := commitKey(group, p)
		o, ok := found.Lookup(topic, p)
		at := int64(-1)
		if ok {
			at = o.At
		}
		if want, acked := floor[key]; acked && at < want {
			c.fails = append(c.fails, fmt.Sprintf("%s: %s is at %d, %d was acknowledged", when, key, at, want))
		}
		if at > c.tried[key] && group != "members" {
			c.fails = append(c.fails, fmt.Sprintf("%s: %s is at %d, only %d was ever committed", when, key, at, c.tried[key]))
		}
	}
}

func groupClient(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.MetadataMinAge(20 * time.Millisecond), kgo.DialTimeout(time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// commitAlways commits ever larger offsets of one group, as a consumer that assigns itself.
func (c *commits) commitAlways(ctx context.Context, cl *kgo.Client, group string) {
	adm := kadm.NewClient(cl)
	for offset := int64(1); ctx.Err() == nil; offset++ {
		p := int32(offset) % partitionCount
		c.set(c.tried, commitKey(group, p), offset)
		var os kadm.Offsets
		os.AddOffset(topic, p, offset, -1)
		res, err := adm.CommitOffsets(ctx, group, os)
		if err == nil && res.Error() == nil {
			c.set(c.acked, commitKey(group, p), offset)
		}
	}
}

// TestCommittedOffsetsNeverGoBack kills the broker under commits and a group at work. What was
// acknowledged is there after each start, the group goes on, and reads every record at least once.
func TestCommittedOffsetsNeverGoBack(t *testing.T) {
	n := min(*kills, groupKillsMax)
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	rnd := rand.New(rand.NewPCG(s, 2))
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["offsets.topic.segment.bytes"] = "65536" // so that kills also fall into rolls
	b.Props["offsets.topic.num.partitions"] = "5"
	b.Start()
	createTopic(t, b.Addr())

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := newCommits()
	var work sync.WaitGroup
	for i := range committerCount {
		cl := groupClient(t, b.Addr())
		defer cl.Close()
		work.Go(func() { c.commitAlways(ctx, cl, fmt.Sprintf("g%d", i)) })
	}
	load, err := StartLoad(b.Addr(), topic, partitionCount, 1, s)
	if err != nil {
		t.Fatal(err)
	}
	defer load.Abandon()
	seen := newSeen()
	memberCtx, leave := context.WithCancel(context.Background())
	defer leave()
	var members sync.WaitGroup
	for range memberCount {
		members.Go(func() { seen.consume(memberCtx, t, b.Addr(), c) })
	}
	look := groupClient(t, b.Addr())
	defer look.Close()
	for i := range n {
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		b.Kill()
		floor := c.floor()
		b.Launch()
		if err := b.WaitReady(30 * time.Second); err != nil {
			t.Fatalf("after a kill: %v\n%s", err, b.LogTail(60))
		}
		c.lookAt(ctx, t, look, fmt.Sprintf("after kill %d", i+1), floor)
	}
	cancel()
	work.Wait()
	stopCtx, done := context.WithTimeout(context.Background(), 60*time.Second)
	defer done()
	if err := load.Stop(stopCtx); err != nil {
		t.Fatal(err)
	}
	read, err := ReadAll(stopCtx, b.Addr(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if !seen.await(stopCtx, len(read)) {
		t.Errorf("the group has read %d of %d records", seen.count(), len(read))
	}
	leave()
	members.Wait()
	c.lookAt(stopCtx, t, look, "in the end", c.floor())
	if acked := c.floor(); len(acked) < committerCount*partitionCount {
		t.Errorf("only %d of the partitions were ever committed", len(acked))
	}
	for _, f := range c.fails[:min(10, len(c.fails))] {
		t.Error(f)
	}
	t.Logf("%d kills, %d records, committed %v", n, len(read), c.floor()[commitKey("g0", 0)])
}

// lookAt fetches all groups' offsets and checks them.
func (c *commits) lookAt(ctx context.Context, t *testing.T, cl *kgo.Client, when string, floor map[string]int64) {
	t.Helper()
	groups := []string{"members"}
	for i := range committerCount {
		groups = append(groups, fmt.Sprintf("g%d", i))
	}
	for _, g := range groups {
		for {
			found, err := kadm.NewClient(cl).FetchOffsets(ctx, g)
			if err == nil {
				c.check(when, floor, found, g)
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: offsets of %s: %v", when, g, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// seen is the records that a group has read.
type seen struct {
	mu  sync.Mutex
	all map[string]bool
}

func newSeen() *seen { return &seen{all: map[string]bool{}} }

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func (s *seen) await(ctx context.Context, n int) bool {
	for s.count() < n {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

// consume is one member: it reads, then commits what it has read.
func (s *seen) consume(ctx context.Context, t *testing.T, addr string, c *commits) {
	cl := groupClient(t, addr, kgo.ConsumerGroup("members"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.BlockRebalanceOnPoll(), kgo.FetchMaxWait(100*time.Millisecond))
	defer cl.Close()
	for ctx.Err() == nil {
		fs := cl.PollFetches(ctx)
		s.mu.Lock()
		for r := range fs.RecordsAll() {
			s.all[fmt.Sprintf("%d/%d", r.Partition, r.Offset)] = true
		}
		s.mu.Unlock()
		fs.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) == 0 {
				return
			}
			at := p.Records[len(p.Records)-1].Offset + 1
			if err := cl.CommitRecords(ctx, p.Records...); err == nil {
				c.set(c.acked, commitKey("members", p.Partition), at)
			}
		})
		cl.AllowRebalance()
	}
}
