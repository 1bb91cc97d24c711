package churn

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

const killedPartitions = 6

// committer commits rising offsets to a group of its own, as fast as they are acknowledged, while its gate is open.
type committer struct {
	group string
	gate  *gate
	mu    sync.Mutex
	acked map[int32]int64
}

// gate holds the committers back while a restarted broker is looked at: a later commit would hide that an earlier
// one is gone.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed when it is
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) lift() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
}

func (c *committer) acknowledged() map[int32]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.acked)
}

// run commits until ctx ends. An offset whose commit failed may have been stored all the same; the next one is
// higher.
func (c *committer) run(ctx context.Context, adm *kadm.Client) {
	for at := int64(1); ctx.Err() == nil; at++ {
		c.gate.pass(ctx)
		var offsets kadm.Offsets
		for p := range int32(killedPartitions) {
			offsets.AddOffset("killed", p, at, -1)
		}
		answers, err := adm.CommitOffsets(ctx, c.group, offsets)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		c.mu.Lock()
		answers.Each(func(o kadm.OffsetResponse) {
			if o.Err == nil {
				c.acked[o.Partition] = o.At
			}
		})
		c.mu.Unlock()
	}
}

// watched is one group whose offsets are held against what was acknowledged.
type watched struct {
	group string
	acked func() map[int32]int64
	seen  map[int32]int64
}

// check fetches the group's offsets, and says which are behind what was acknowledged, or was seen before. They may
// be ahead of that.
func (w *watched) check(t *testing.T, adm *kadm.Client) []string {
	t.Helper()
	acked := w.acked()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var fetched kadm.OffsetResponses
	// The client's connection died with the broker, and it takes a moment for it to see that.
	until(t, "the offsets of "+w.group, func() bool {
		var err error
		fetched, err = adm.FetchOffsets(ctx, w.group)
		return err == nil
	})
	var out []string
	for p := range int32(killedPartitions) {
		o, ok := fetched.Lookup("killed", p)
		if !ok {
			o.At = 0
		}
		if o.Err != nil || o.At < acked[p] || o.At < w.seen[p] {
			out = append(out, fmt.Sprintf("%s: partition %d: committed is %d (%v); acknowledged was %d, seen before %d",
				w.group, p, o.At, o.Err, acked[p], w.seen[p]))
		}
		w.seen[p] = o.At
	}
	return out
}

// underFire is a broker with groups that consume and commit.
type underFire struct {
	t       *testing.T
	rnd     *rand.Rand
	b       *proc.Broker
	cl      *kgo.Client
	gate    *gate
	groups  []*watched
	ledgers map[string]*ledger
	stop    func() // ends producers and committers
}

func newUnderFire(t *testing.T, bin string) *underFire {
	u := &underFire{t: t, rnd: proc.Random(t, *seed), b: proc.New(t, bin, t.TempDir()), gate: newGate(), ledgers: map[string]*ledger{}}
	u.b.Start()
	u.cl = newClient(t, u.b.Addr())
	proc.CreateTopic(t, u.b.Addr(), "killed", killedPartitions)
	ctx, cancel := context.WithCancel(context.Background())
	wait := produce(ctx, t, u.b.Addr(), "killed", killedPartitions)
	for _, name := range []string{"eager", "cooperative"} {
		l := &ledger{}
		u.ledgers[name] = l
		for range 3 {
			startInside(t, Config{
				Addr: u.b.Addr(), Group: name, Topic: "killed", Cooperative: name == "cooperative",
				Session: 20 * time.Second, Rebalance: 20 * time.Second,
			}, l)
		}
		u.groups = append(u.groups, &watched{name, l.acknowledged, map[int32]int64{}})
	}
	var committers sync.WaitGroup
	for i := range 4 {
		c := &committer{group: fmt.Sprintf("plain-%d", i), gate: u.gate, acked: map[int32]int64{}}
		adm := kadm.NewClient(newClient(t, u.b.Addr(), kgo.RequestRetries(0)))
		committers.Go(func() { c.run(ctx, adm) })
		u.groups = append(u.groups, &watched{c.group, c.acknowledged, map[int32]int64{}})
	}
	u.stop = func() {
		cancel()
		committers.Wait()
		wait()
	}
	t.Cleanup(cancel)
	u.gate.lift()
	return u
}

// kill kills the broker at some moment, starts it again, and says which offsets went back.
func (u *underFire) kill() []string {
	u.t.Helper()
	u.goOn()
	time.Sleep(time.Duration(u.rnd.IntN(100)) * time.Millisecond)
	u.gate.shut()
	u.b.Kill()
	u.b.Launch()
	// One kill in five falls into the start itself, and the loading of the groups.
	if u.rnd.IntN(5) == 0 {
		time.Sleep(time.Duration(u.rnd.IntN(60)) * time.Millisecond)
		u.b.Kill()
		u.b.Launch()
	}
	if err := u.b.WaitReady(60 * time.Second); err != nil {
		u.t.Fatalf("after a kill: %v", err)
	}
	out := u.check()
	u.gate.lift()
	return out
}

func (u *underFire) check() []string {
	adm := kadm.NewClient(u.cl)
	var out []string
	for _, w := range u.groups {
		out = append(out, w.check(u.t, adm)...)
	}
	return out
}

// TestBrokerDiesUnderGroups kills the broker again and again under groups that consume and commit. No committed
// offset that was acknowledged, or once seen, may be gone after a restart, and the members go on.
func TestBrokerDiesUnderGroups(t *testing.T) {
	t.Parallel()
	u := newUnderFire(t, proc.Binary(t))
	for range *kills {
		for _, wrong := range u.kill() {
			t.Error(wrong)
		}
	}
	u.goOn()
	u.stop()
	ends := logEnds(t, u.cl, "killed")
	for name, l := range u.ledgers {
		until(t, "every record to be processed", func() bool { return l.covers(ends) })
		t.Logf("%s: %s; %d generations", name, tally(l.all()), generations(l.all()))
		report(t, Check(l.all(), ends))
	}
	for _, wrong := range u.check() {
		t.Error(wrong)
	}
}

// TestPlantedBugIsFound: a broker whose recovery cuts one batch too many loses commits, which must be noticed.
func TestPlantedBugIsFound(t *testing.T) {
	t.Parallel()
	u := newUnderFire(t, proc.Binary(t, "plantedbug"))
	const plantedKills = 10
	for i := range plantedKills {
		if wrong := u.kill(); len(wrong) > 0 {
			t.Logf("found after %d kills: %s", i+1, wrong[0])
			return
		}
	}
	t.Fatalf("%d kills of a broker with a planted bug went by unnoticed", plantedKills)
}

// goOn waits until each group has processed something since now.
func (u *underFire) goOn() {
	u.t.Helper()
	for name, l := range u.ledgers {
		before := l.processed()
		until(u.t, name+" to go on", func() bool { return l.processed() > before })
	}
}

func generations(events []Event) int {
	seen := map[int32]bool{}
	for _, e := range events {
		if e.Kind == Assigned {
			seen[e.Generation] = true
		}
	}
	return len(seen)
}
