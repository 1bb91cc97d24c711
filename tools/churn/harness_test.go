package churn

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of what happens to members and brokers; 0: from the clock")
	steps = flag.Int("steps", 60, "how many things happen to each group")
	kills = flag.Int("kills", 25, "how often the broker is killed under load")
)

func TestMain(m *testing.M) {
	proc.RunRole(map[string]func([]byte) error{"member": memberProcess})
	flag.Parse()
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

// memberProcess is a member in a process of its own: events go to standard output, and it leaves when its
// standard input says so or ends.
func memberProcess(text []byte) error {
	var cfg Config
	if err := json.Unmarshal(text, &cfg); err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		leave()
	}()
	enc := json.NewEncoder(os.Stdout)
	err := Run(ctx, cfg, func(e Event) { _ = enc.Encode(e) })
	if errors.Is(err, kerr.FencedInstanceID) {
		return nil // as it should be, when another has come under its name
	}
	return err
}

// inside is a member in this process.
type inside struct {
	leave context.CancelFunc
	done  chan struct{}
}

// startInside starts a member in this process; it leaves at the end of the test.
func startInside(t *testing.T, cfg Config, l *ledger) *inside {
	ctx, leave := context.WithCancel(context.Background())
	m := &inside{leave, make(chan struct{})}
	go func() {
		defer close(m.done)
		if err := Run(ctx, cfg, l.add); err != nil {
			t.Errorf("a member has ended: %v", err)
		}
	}()
	t.Cleanup(func() {
		leave()
		<-m.done
	})
	return m
}

// ledger collects what all members of a group report.
type ledger struct {
	mu       sync.Mutex
	events   []Event
	coverage coverage
	count    int64
}

func (l *ledger) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	l.coverage.add(e)
	if e.Kind == Processed {
		l.count += e.To - e.From
	}
}

// processed is how many records were processed so far, some more than once.
func (l *ledger) processed() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func (l *ledger) covers(ends map[int32]int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, end := range ends {
		if l.coverage.next(p) < end {
			return false
		}
	}
	return true
}

func (l *ledger) all() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[:len(l.events):len(l.events)]
}

// acknowledged is the highest offset that was committed, for each partition.
func (l *ledger) acknowledged() map[int32]int64 {
	out := map[int32]int64{}
	for _, e := range l.all() {
		if e.Kind == Committed {
			out[e.Partition] = max(out[e.Partition], e.To)
		}
	}
	return out
}

// tally counts events by kind, the refused by their cause.
func tally(events []Event) string {
	n := map[string]int{}
	for _, e := range events {
		k := string(e.Kind)
		if e.Kind == Refused {
			name, _, _ := strings.Cut(e.Cause, ":")
			k += " " + name
		}
		n[k]++
	}
	return fmt.Sprint(n)
}

func startBroker(t *testing.T) *proc.Broker {
	t.Helper()
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["group.min.session.timeout.ms"] = "100"
	b.Start()
	return b
}

func newClient(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.MetadataMinAge(50 * time.Millisecond), kgo.DialTimeout(2 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// produce sends records to all partitions in turn until ctx ends; what it returns waits for
// the last ones, and fails the test if any failed.
func produce(ctx context.Context, t *testing.T, addr, topic string, partitions int32) (wait func()) {
	var failed atomic.Pointer[error]
	cl := newClient(t, addr, kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			r := &kgo.Record{Partition: int32(i) % partitions, Value: fmt.Append(nil, i)}
			cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			})
			if i%20 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	return func() {
		<-done
		limit, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := cl.Flush(limit); err != nil {
			t.Errorf("flush: %v", err)
		}
		if err := failed.Load(); err != nil {
			t.Errorf("a record was not acknowledged: %v", *err)
		}
	}
}

// logEnds are the ends of a topic's partitions.
func logEnds(t *testing.T, cl *kgo.Client, topic string) map[int32]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	listed, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { out[o.Partition] = o.Offset })
	return out
}

// until waits for what must come; the limit is only there to end a test that hangs.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// settled says whether a group is stable with so many members.
func settled(cl *kgo.Client, group string, members int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	d, err := kadm.NewClient(cl).DescribeGroups(ctx, group)
	g := d[group]
	if members == 0 {
		return err == nil && len(g.Members) == 0
	}
	return err == nil && g.State == "Stable" && len(g.Members) == members
}

func report(t *testing.T, vs []Violation) {
	t.Helper()
	for i, v := range vs {
		if i == 20 {
			t.Errorf("… and %d more", len(vs)-i)
			return
		}
		t.Error(v)
	}
}
