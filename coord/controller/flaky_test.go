package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/internal/coordtest"
	"platter/coord/zkclient"
	"platter/engine/store"
	"platter/io/clock"
)

// flaky loses requests, and answers to requests that were carried out.
type flaky struct {
	*zkclient.Client
	mu  sync.Mutex
	rng *rand.Rand
	p   float64
}

// lost says whether this request never arrives, or its answer does not.
func (f *flaky) lost() (request, answer bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch x := f.rng.Float64(); {
	case x < f.p/2:
		return true, false
	case x < f.p:
		return false, true
	}
	return false, false
}

func (f *flaky) calm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.p = 0
}

func through[T any](f *flaky, do func() (T, error)) (T, error) {
	request, answer := f.lost()
	var none T
	if request {
		return none, zkclient.ErrConnectionLoss
	}
	v, err := do()
	if answer {
		return none, zkclient.ErrConnectionLoss
	}
	return v, err
}

func (f *flaky) Create(ctx context.Context, path string, data []byte, m zkclient.CreateMode) (string, error) {
	return through(f, func() (string, error) { return f.Client.Create(ctx, path, data, m) })
}

func (f *flaky) Delete(ctx context.Context, path string, version int32) error {
	_, err := through(f, func() (int, error) { return 0, f.Client.Delete(ctx, path, version) })
	return err
}

func (f *flaky) GetMany(ctx context.Context, paths []string) ([]zkclient.Node, error) {
	return through(f, func() ([]zkclient.Node, error) { return f.Client.GetMany(ctx, paths) })
}

func (f *flaky) Multi(ctx context.Context, ops ...zkclient.Op) ([]zkclient.Result, error) {
	return through(f, func() ([]zkclient.Result, error) { return f.Client.Multi(ctx, ops...) })
}

func (f *flaky) Exists(ctx context.Context, path string, watch func(zkclient.Event)) (zkclient.Stat, error) {
	return through(f, func() (zkclient.Stat, error) { return f.Client.Exists(ctx, path, watch) })
}

func (f *flaky) Children(ctx context.Context, path string, watch func(zkclient.Event)) ([]string, zkclient.Stat, error) {
	var stat zkclient.Stat
	names, err := through(f, func() (names []string, err error) {
		names, stat, err = f.Client.Children(ctx, path, watch)
		return names, err
	})
	return names, stat, err
}

// hasty fires timers at once.
type hasty struct{ clock.Real }

func (hasty) AfterFunc(_ time.Duration, f func()) func() bool {
	go f()
	return func() bool { return false }
}

// TestFlakyCoordinator: whatever gets lost on the way, what was answered holds, and in the end znodes, brokers
// and clients' metadata agree.
func TestFlakyCoordinator(t *testing.T) {
	const seeds = 12
	answers := 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { answers += flakyRun(t, seed) })
	}
	if most := seeds * flakyRequests; answers < most/4 || answers == most {
		t.Errorf("%d of %d requests had a clear answer: too few, or nothing was lost", answers, most)
	}
}

const flakyRequests = 60

// flakyRun says how many requests had a clear answer.
func flakyRun(t *testing.T, seed uint64) (answers int) {
	c := startCoordinator(t)
	ctx := t.Context()
	rng := rand.New(rand.NewPCG(seed, 7))
	zk := c.Client()
	_, err := cluster.EnsureLayout(ctx, zk)
	coordtest.Must(t, err)
	_, err = zk.Create(ctx, cluster.BrokerPath(1), cluster.EncodeBroker(cluster.Broker{ID: 1}, 0), zkclient.Ephemeral)
	coordtest.Must(t, err)
	b := newBrokers()
	ctl := New(Config{BrokerID: 1, Brokers: b, Clock: hasty{}, Log: quiet})
	defer ctl.Stop()
	f := &flaky{Client: zk, rng: rand.New(rand.NewPCG(seed, 8)), p: 0.1}
	coordtest.Must(t, ctl.Session(ctx, f))

	want := map[string]bool{} // true: is there, false: is not; unknown names may be either
	for range flakyRequests {
		name := fmt.Sprintf("t%d", rng.IntN(6))
		if rng.IntN(3) > 0 {
			out := ctl.CreateTopics(ctx, []NewTopic{{Name: name, PartitionCount: int32(1 + rng.IntN(4)), ReplicationFactor: 1}})
			answers += note(t, want, name, out[0].Err, true, ErrTopicExists)
		} else {
			err := ctl.DeleteTopics(ctx, []string{name})[0]
			answers += note(t, want, name, err, false, ErrUnknownTopic)
		}
	}
	f.calm()
	ctl.Reread()
	coordtest.Eventually(t, "all is done", func() bool {
		markers, _, err := zk.Children(ctx, cluster.DeleteTopicsPath, nil)
		return err == nil && len(markers) == 0 && ctl.Active() && agree(t, zk, b, want) == nil
	})
	coordtest.Must(t, agree(t, zk, b, want))
	return answers
}

// note keeps what an answer says of a topic; 1 for one that says something.
func note(t *testing.T, want map[string]bool, name string, err error, exists bool, already error) int {
	t.Helper()
	was, known := want[name]
	switch {
	case err == nil:
		if known && was == exists {
			t.Errorf("%s: the topic was there %v, and a change to that succeeded", name, was)
		}
		want[name] = exists
	case errors.Is(err, already):
		if known && was != exists {
			t.Errorf("%s: %v, after it was there %v", name, err, was)
		}
		want[name] = exists
	case errors.Is(err, ErrNotController), errors.Is(err, ErrTimeout):
		delete(want, name) // unknown
		return 0
	default:
		t.Errorf("%s: %v", name, err)
	}
	return 1
}

// agree compares znodes, brokers and metadata.
func agree(t *testing.T, zk *zkclient.Client, b *brokers, want map[string]bool) error {
	t.Helper()
	names, _, err := zk.Children(t.Context(), cluster.TopicsPath, nil)
	if err != nil {
		return err
	}
	image := b.look()
	if len(image.Topics) != len(names) {
		return fmt.Errorf("metadata has %d topics, the coordinator %v", len(image.Topics), names)
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
		topic := image.Topic(name)
		if topic == nil {
			return fmt.Errorf("metadata lacks %s", name)
		}
		for i := range topic.Partitions {
			p, _, err := zk.Get(t.Context(), cluster.StatePath(name, int32(i)), nil)
			if err != nil {
				return err
			}
			s, err := cluster.DecodeState(p)
			if err != nil {
				return err
			}
			b.mu.Lock()
			told := b.leads[store.TP{Topic: name, Partition: int32(i)}]
			b.mu.Unlock()
			if m := topic.Partitions[i]; s.Leader != 1 || s.LeaderEpoch != m.LeaderEpoch || s.LeaderEpoch != told.State.LeaderEpoch || told.TopicID != topic.ID {
				return fmt.Errorf("%s-%d: znode %+v, metadata %+v, broker %+v", name, i, s, m, told)
			}
		}
	}
	for name, exists := range want {
		if there[name] != exists {
			return fmt.Errorf("%s: there is %v, the answers said %v", name, there[name], exists)
		}
	}
	return nil
}
