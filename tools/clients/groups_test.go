package clients

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// member is one franz-go consumer of a group, which reads until it is stopped.
type member struct {
	cl   *kgo.Client
	stop context.CancelFunc
	done chan struct{}
}

// reads is what the members of a group have read together.
type reads struct {
	mu    sync.Mutex
	seen  map[string]int // how often each value
	owner map[int32]*member
}

func newReads() *reads { return &reads{seen: map[string]int{}, owner: map[int32]*member{}} }

func (r *reads) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

func (r *reads) partitions() map[*member]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[*member]int{}
	for _, m := range r.owner {
		out[m]++
	}
	return out
}

// join starts a member; opts choose its way of balancing.
func join(t *testing.T, addr, topic, group string, r *reads, opts ...kgo.Opt) *member {
	t.Helper()
	m := &member{done: make(chan struct{})}
	taken := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, p := range parts[topic] {
			if o := r.owner[p]; o != nil && o != m && !rolled() { // who was cut off from the group has not heard yet
				t.Errorf("partition %d is given to a member while another has it", p)
			}
			r.owner[p] = m
		}
	}
	given := func(ctx context.Context, cl *kgo.Client, parts map[string][]int32) {
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			t.Logf("commit on revocation: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, p := range parts[topic] {
			if r.owner[p] == m {
				delete(r.owner, p)
			}
		}
	}
	session := 20 * time.Second
	if rolled() {
		session = shortSession
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds(addr)...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(taken), kgo.OnPartitionsRevoked(given), kgo.OnPartitionsLost(given),
		kgo.SessionTimeout(session), kgo.HeartbeatInterval(200 * time.Millisecond), kgo.RebalanceTimeout(30 * time.Second),
		kgo.AutoCommitInterval(100 * time.Millisecond), kgo.FetchMaxWait(200 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	m.cl = cl
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			fs := cl.PollFetches(ctx)
			r.mu.Lock()
			for rec := range fs.RecordsAll() {
				r.seen[string(rec.Value)]++
			}
			r.mu.Unlock()
		}
	}()
	t.Cleanup(m.leave)
	return m
}

// leave commits what was read, and leaves the group.
func (m *member) leave() {
	m.stop()
	<-m.done
	m.cl.Close()
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// fill creates a topic and puts values there.
func fill(t *testing.T, addr, topic string, partitions int32, from, to int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds(addr)...), kgo.DefaultProduceTopic(topic), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if from == 0 {
		if _, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, replicas(), nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	var recs []*kgo.Record
	for i := from; i < to; i++ {
		recs = append(recs, kgo.KeySliceRecord(fmt.Appendf(nil, "k%d", i), fmt.Appendf(nil, "v%d", i)))
	}
	if err := cl.ProduceSync(ctx, recs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// TestFranzGroup: members share a topic, take over from one that leaves, and a group that comes back goes
// on where it was; by every way of balancing.
func TestFranzGroup(t *testing.T) {
	b := broker(t, nil)
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative": kgo.CooperativeStickyBalancer(),
	}
	b.through(func(t *testing.T, suffix string) {
		t.Run("balance"+suffix, func(t *testing.T) {
			for name, balancer := range balancers {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					franzGroup(t, b, "topic-"+name+suffix, "group-"+name+suffix, kgo.Balancers(balancer))
				})
			}
		})
	})
}

func franzGroup(t *testing.T, b *target, topic, group string, opt kgo.Opt) {
	t.Helper()
	fill(t, b.Addr(), topic, 6, 0, 600)
	r := newReads()
	one := join(t, b.Addr(), topic, group, r, opt)
	until(t, "all records", func() bool { return r.count() == 600 })
	two := join(t, b.Addr(), topic, group, r, opt)
	until(t, "two members with three partitions each", func() bool {
		p := r.partitions()
		return p[one] == 3 && p[two] == 3
	})
	fill(t, b.Addr(), topic, 6, 600, 900)
	until(t, "more records", func() bool { return r.count() == 900 })
	one.leave()
	until(t, "the other has all", func() bool { return r.partitions()[two] == 6 })
	fill(t, b.Addr(), topic, 6, 900, 1200)
	until(t, "records to the one that stayed", func() bool { return r.count() == 1200 })
	two.leave()

	again := newReads()
	fill(t, b.Addr(), topic, 6, 1200, 1210)
	three := join(t, b.Addr(), topic, group, again, opt)
	fresh := func() (n int) {
		again.mu.Lock()
		defer again.mu.Unlock()
		for i := 1200; i < 1210; i++ {
			n += min(again.seen[fmt.Sprint("v", i)], 1)
		}
		return n
	}
	until(t, "what is new", func() bool { return fresh() == 10 })
	three.leave()
	if again.count() != 10 && !rolled() { // there its last commit may not have come through
		t.Errorf("%d records were read, where 10 are new", again.count())
	}
}

// TestQueueAndBroadcast: the members of one group share a topic's records, each group has them all.
func TestQueueAndBroadcast(t *testing.T) {
	b := broker(t, nil)
	b.through(func(t *testing.T, suffix string) { queueAndBroadcast(t, b, "shared"+suffix, "group"+suffix) })
}

func queueAndBroadcast(t *testing.T, b *target, topic, group string) {
	t.Helper()
	const records, each = 800, 3
	fill(t, b.Addr(), topic, 2*each, 0, 0)
	var groups []*reads
	var members []*member
	for g := range 2 {
		r := newReads()
		groups = append(groups, r)
		for range each {
			members = append(members, join(t, b.Addr(), topic, fmt.Sprint(group, "-", g), r))
		}
		until(t, "members with two partitions each", func() bool {
			p := r.partitions()
			for _, n := range p {
				if n != 2 {
					return false
				}
			}
			return len(p) == each
		})
	}
	fill(t, b.Addr(), topic, 0, 1, records+1)
	for g, r := range groups {
		until(t, "all records", func() bool { return r.count() == records })
		r.mu.Lock()
		for v, n := range r.seen {
			if n != 1 && !rolled() {
				t.Errorf("group %d has read %s %d times", g, v, n)
			}
		}
		r.mu.Unlock()
	}
	for _, m := range members {
		m.leave()
	}
}

// TestFranzStatic: a static member that restarts gets its partitions back without a rebalance of the
// others.
func TestFranzStatic(t *testing.T) {
	b := broker(t, nil)
	fill(t, b.Addr(), "static", 4, 0, 100)
	r := newReads()
	instance := func(s string) kgo.Opt { return kgo.InstanceID(s) }
	one := join(t, b.Addr(), "static", "static", r, instance("one"))
	two := join(t, b.Addr(), "static", "static", r, instance("two"))
	until(t, "two members with two partitions each", func() bool {
		p := r.partitions()
		return p[one] == 2 && p[two] == 2
	})
	until(t, "all records", func() bool { return r.count() == 100 })
	_, before := one.cl.GroupMetadata()
	two.leave() // a static member does not leave the group
	r.mu.Lock()
	for p, m := range r.owner {
		if m == two {
			delete(r.owner, p)
		}
	}
	r.mu.Unlock()
	back := join(t, b.Addr(), "static", "static", r, instance("two"))
	until(t, "the partitions of the one that is back", func() bool { return r.partitions()[back] == 2 })
	if _, after := one.cl.GroupMetadata(); after != before {
		t.Errorf("the generation went from %d to %d", before, after)
	}
}

// TestFranzAdmin: what tools do with groups.
func TestFranzAdmin(t *testing.T) {
	b := broker(t, nil)
	fill(t, b.Addr(), "t", 2, 0, 50)
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	r := newReads()
	m := join(t, b.Addr(), "t", "g", r)
	until(t, "all records", func() bool { return r.count() == 50 })
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds(b.Addr())...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	groups, err := adm.ListGroups(ctx)
	if err != nil || len(groups.Groups()) != 1 || groups["g"].State != "Stable" {
		t.Fatalf("list: %v %v", groups, err)
	}
	d, err := adm.DescribeGroups(ctx, "g")
	if err != nil || d["g"].State != "Stable" || len(d["g"].Members) != 1 || d["g"].Protocol != "cooperative-sticky" {
		t.Fatalf("describe: %+v %v", d, err)
	}
	if res, err := adm.DeleteGroups(ctx, "g"); err != nil || res["g"].Err == nil || !strings.Contains(res["g"].Err.Error(), "NON_EMPTY_GROUP") {
		t.Fatalf("delete with a member: %v %v", res, err)
	}
	m.leave()
	offsets, err := adm.FetchOffsets(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	offsets.Each(func(o kadm.OffsetResponse) { sum += o.At })
	if sum != 50 {
		t.Errorf("offsets come to %d", sum)
	}
	if _, err := adm.DeleteOffsets(ctx, "g", kadm.TopicsSet{"t": {0: {}}}); err != nil {
		t.Fatal(err)
	}
	if offsets, err = adm.FetchOffsets(ctx, "g"); err != nil || len(offsets["t"]) != 1 {
		t.Fatalf("after a deletion: %v %v", offsets, err)
	}
	if _, err := adm.DeleteTopic(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	until(t, "offsets of a deleted topic to go", func() bool {
		o, err := adm.FetchOffsets(ctx, "g")
		return err == nil && len(o) == 0
	})
	if res, err := adm.DeleteGroups(ctx, "g"); err != nil || res["g"].Err != nil {
		t.Fatalf("delete: %v %v", res, err)
	}
	if groups, err = adm.ListGroups(ctx); err != nil || len(groups) != 0 {
		t.Fatalf("after the deletion: %v %v", groups, err)
	}
}
