package groups

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

// start starts a broker that knows topic t, and its coordinator.
func start(t *testing.T, partitions int32, props map[string]string) *proc.Broker {
	t.Helper()
	b := proc.New(t, proc.Binary(t), t.TempDir())
	for k, v := range props {
		b.Props[k] = v
	}
	b.Start()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, partitions, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	if c := adm.FindGroupCoordinators(ctx, "g"); c.Error() != nil {
		t.Fatal(c.Error())
	}
	return b
}

// crowd is members of one group that keep it going.
type crowd struct {
	t       *testing.T
	addr    string
	count   int32 // partitions
	members sync.WaitGroup
	stop    atomic.Bool

	mu    sync.Mutex
	owned map[int32]map[int32]string // generation to partition to member
	has   map[string]settled
}

// settled is where a member stands.
type settled struct {
	generation int32
	partitions int
}

func newCrowd(t *testing.T, addr string, count int32) *crowd {
	return &crowd{t: t, addr: addr, count: count, owned: map[int32]map[int32]string{}, has: map[string]settled{}}
}

// add starts a member.
func (c *crowd) add(name string) {
	c.members.Go(func() {
		m, err := Dial(c.addr, "g")
		if err != nil {
			c.t.Error(err)
			return
		}
		defer m.Close()
		m.SessionMs = 6000
		for !c.stop.Load() {
			if err := m.Join(c.count); err != nil {
				c.t.Errorf("%s: %v", name, err)
				return
			}
			c.note(name, m)
			for rejoin := false; !rejoin && !c.stop.Load(); {
				time.Sleep(100 * time.Millisecond)
				if rejoin, err = m.Heartbeat(); err != nil {
					c.t.Errorf("%s: %v", name, err)
					return
				}
			}
		}
	})
}

// note checks that nobody else was ever given the same in this generation.
func (c *crowd) note(name string, m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	owners := c.owned[m.Generation]
	if owners == nil {
		owners = map[int32]string{}
		c.owned[m.Generation] = owners
	}
	for _, p := range m.Partitions {
		if o := owners[p]; o != "" && o != name {
			c.t.Errorf("generation %d: partition %d is of %s and of %s", m.Generation, p, o, name)
		}
		owners[p] = name
	}
	c.has[name] = settled{m.Generation, len(m.Partitions)}
}

func (c *crowd) generation(name string) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.has[name].generation
}

// settle waits until so many members share all partitions in one generation.
func (c *crowd) settle(members int) {
	c.t.Helper()
	began := time.Now()
	for end := began.Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		generations, partitions := map[int32]bool{}, 0
		for _, h := range c.has {
			generations[h.generation] = true
			partitions += h.partitions
		}
		n := len(c.has)
		c.mu.Unlock()
		if n == members && len(generations) == 1 && partitions == int(c.count) {
			c.t.Logf("%d members have settled over %d partitions after %v", members, c.count, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%d of %d members have %d of %d partitions in %d generations", n, members, partitions, c.count, len(generations))
		}
	}
}

// TestSuspendedBroker: a broker that was suspended for longer than a session does not throw out members
// whose heartbeats it could not hear.
func TestSuspendedBroker(t *testing.T) {
	b := start(t, 6, map[string]string{"group.min.session.timeout.ms": "1000"})
	c := newCrowd(t, b.Addr(), 6)
	for i := range 3 {
		c.add(fmt.Sprint("m", i))
	}
	c.settle(3)
	before := c.generation("m0")
	b.Signal(syscall.SIGSTOP)
	time.Sleep(9 * time.Second)
	b.Signal(syscall.SIGCONT)
	time.Sleep(1500 * time.Millisecond)
	c.settle(3)
	c.stop.Store(true)
	c.members.Wait()
	if after := c.generation("m0"); after != before {
		t.Errorf("the generation went from %d to %d", before, after)
	}
}

// TestManyGroups: 1,000 groups of one member each cost little.
func TestManyGroups(t *testing.T) {
	b := start(t, 1, nil)
	before := b.RSSBytes()
	var work sync.WaitGroup
	slots := make(chan struct{}, 50)
	for i := range 1000 {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			m, err := Dial(b.Addr(), fmt.Sprint("group-", i))
			if err != nil {
				t.Error(err)
				return
			}
			defer m.Close() // the member stays for its session
			if err := m.Join(1); err != nil || len(m.Partitions) != 1 {
				t.Errorf("group %d: %v, %d partitions", i, err, len(m.Partitions))
			}
		})
	}
	work.Wait()
	grown := b.RSSBytes() - before
	t.Logf("1,000 groups take %d KiB each", grown>>10/1000)
	if grown > 40<<20 {
		t.Errorf("1,000 groups take %d MiB", grown>>20)
	}
}
