package controller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/internal/coordtest"
	"platter/coord/zkclient"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/memdisk"
)

// brokers is a way to brokers that only remembers what they were told.
type brokers struct {
	mu      sync.Mutex
	leads   map[store.TP]PartitionState // by the last word
	stopped []store.TP
	image   *cluster.Image
	refuse  map[store.TP]error
	told    map[store.TP]int // how often
}

func (b *brokers) asked(tp store.TP) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told[tp]
}

func newBrokers() *brokers {
	return &brokers{leads: map[store.TP]PartitionState{}, image: cluster.NewImage("c"), refuse: map[store.TP]error{},
		told: map[store.TP]int{}}
}

func (b *brokers) LeaderAndISR(_ context.Context, to cluster.Broker, r LeaderAndISR) ([]error, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(r.Partitions))
	for i, p := range r.Partitions {
		b.told[p.TP]++
		if errs[i] = b.refuse[p.TP]; errs[i] == nil {
			b.leads[p.TP] = p
		}
	}
	return errs, nil
}

func (b *brokers) StopReplica(_ context.Context, to cluster.Broker, r StopReplica) ([]error, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range r.Partitions {
		if p.Delete {
			b.stopped = append(b.stopped, p.TP)
		}
	}
	return make([]error, len(r.Partitions)), nil
}

func (b *brokers) UpdateMetadata(_ context.Context, to cluster.Broker, r UpdateMetadata) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.image = b.image.Apply(r.Update, func(string) map[string]string { return nil })
	return nil
}

func (b *brokers) look() *cluster.Image {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.image
}

var quiet = coordtest.Quiet

func startCoordinator(t *testing.T) *coordtest.Coordinator {
	return coordtest.Start(t, memdisk.New(memdisk.Options{}))
}

// join registers a broker and runs its controller.
func join(t *testing.T, c *coordtest.Coordinator, id int32, b Brokers) (*Controller, *zkclient.Client) {
	t.Helper()
	zk := c.Client()
	if _, err := cluster.EnsureLayout(t.Context(), zk); err != nil {
		t.Fatal(err)
	}
	self := cluster.Broker{ID: id, Endpoints: []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 9092}}}
	if _, err := zk.Create(t.Context(), cluster.BrokerPath(id), cluster.EncodeBroker(self, 0), zkclient.Ephemeral); err != nil {
		t.Fatal(err)
	}
	ctl := New(Config{BrokerID: id, PartitionCountDefault: 1, ReplicationDefault: 1, Brokers: b, Clock: clock.Real{}, Log: quiet,
		CheckTopic: func(_ string, o map[string]string) error {
			if v, ok := o["bad"]; ok {
				return fmt.Errorf("bad=%s", v)
			}
			return nil
		}})
	t.Cleanup(ctl.Stop)
	if err := ctl.Session(t.Context(), zk); err != nil {
		t.Fatal(err)
	}
	return ctl, zk
}

func TestCreateAndDelete(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	ctl, zk := join(t, c, 1, b)
	ctx := t.Context()

	out := ctl.CreateTopics(ctx, []NewTopic{
		{Name: "a.b", PartitionCount: 3, ReplicationFactor: 1},
		{Name: "a_b", PartitionCount: 1, ReplicationFactor: 1},
		{Name: "a.b", PartitionCount: 1, ReplicationFactor: 1},
		{Name: "two", PartitionCount: 1, ReplicationFactor: 2},
		{Name: "none", PartitionCount: 0, ReplicationFactor: 1},
		{Name: "sl/ash", PartitionCount: 1, ReplicationFactor: 1},
		{Name: "conf", PartitionCount: 1, ReplicationFactor: 1, Configs: map[string]*string{"bad": ptr("x")}},
		{Name: "null", PartitionCount: 1, ReplicationFactor: 1, Configs: map[string]*string{"x": nil}},
		{Name: "hand", PartitionCount: -1, ReplicationFactor: -1, Assignment: [][]int32{{1}, {1}}},
		{Name: "far", PartitionCount: -1, ReplicationFactor: -1, Assignment: [][]int32{{7}}},
		{Name: "dry", PartitionCount: -1, ReplicationFactor: -1, ValidateOnly: true},
	})
	for i, want := range []error{nil, ErrInvalidTopic, ErrTopicExists, ErrInvalidReplication, ErrInvalidPartitions,
		ErrInvalidTopic, ErrInvalidConfig, ErrInvalidConfig, nil, ErrInvalidAssignment, nil} {
		if !errors.Is(out[i].Err, want) {
			t.Errorf("%s: %v, want %v", out[i].Name, out[i].Err, want)
		}
	}
	image := b.look()
	if len(image.Topics) != 2 || len(image.Topic("a.b").Partitions) != 3 || image.TopicByID(out[0].ID) == nil {
		t.Fatalf("image: %+v", image.Topics)
	}
	if p := image.Topic("hand").Partitions[1]; p.Leader != 1 || p.ControllerEpoch != 1 || p.LeaderEpoch != 0 {
		t.Fatalf("partition: %+v", p)
	}
	self, err := cluster.ReadBrokers(ctx, zk, []string{"1"})
	coordtest.Must(t, err)
	if p, _, err := zk.Get(ctx, "/brokers/topics/a.b/partitions/2/state", nil); err != nil ||
		string(p) != fmt.Sprintf(`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1],"newest_broker_epoch":%d}`, self[0].Epoch) {
		t.Fatalf("state: %s, %v", p, err)
	}

	errs := ctl.DeleteTopics(ctx, []string{"a.b", "nope", "a.b"})
	if errs[0] != nil || !errors.Is(errs[1], ErrUnknownTopic) {
		t.Fatalf("delete: %v", errs)
	}
	if b.look().Topic("a.b") != nil || b.look().TopicByID(out[0].ID) != nil {
		t.Fatal("the deleted topic is still in the image")
	}
	for _, path := range []string{"/brokers/topics/a.b", "/config/topics/a.b", "/admin/delete_topics/a.b"} {
		if _, err := zk.Exists(ctx, path, nil); !errors.Is(err, zkclient.ErrNoNode) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(b.stopped) != 3 {
		t.Errorf("stopped: %v", b.stopped)
	}
	again := ctl.CreateTopics(ctx, []NewTopic{{Name: "a.b", PartitionCount: 1, ReplicationFactor: 1}})
	if again[0].Err != nil || again[0].ID == out[0].ID {
		t.Fatalf("created again: %+v", again[0])
	}
}

// TestConcurrentCreates: many requests at once, each answered for its own topics.
func TestConcurrentCreates(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	ctl, _ := join(t, c, 1, b)
	var all sync.WaitGroup
	var created, existed atomic.Int64
	for i := range 40 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%8 == 7 {
				cancel() // gives up at once; whatever becomes of it, the others must not wait for it
			}
			defer cancel()
			mine := fmt.Sprintf("t%d", i)
			for _, out := range ctl.CreateTopics(ctx, []NewTopic{{Name: mine, PartitionCount: 1, ReplicationFactor: 1}, {Name: "shared", PartitionCount: 1, ReplicationFactor: 1}}) {
				switch {
				case out.Err == nil && out.Name == "shared":
					created.Add(1)
				case errors.Is(out.Err, ErrTopicExists) && out.Name == "shared":
					existed.Add(1)
				case out.Err != nil && i%8 != 7:
					t.Errorf("%s: %v", out.Name, out.Err)
				}
			}
		})
	}
	all.Wait()
	if created.Load() > 1 || created.Load()+existed.Load() < 35 {
		t.Errorf("the shared topic was created %d times, and existed %d times", created.Load(), existed.Load())
	}
	if n := len(b.look().Topics); n < 36 {
		t.Errorf("%d topics", n)
	}
}

func ptr(s string) *string { return &s }

func TestManyPartitions(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	ctl, zk := join(t, c, 1, b)
	const n = 10_000
	out := ctl.CreateTopics(t.Context(), []NewTopic{{Name: "big", PartitionCount: n, ReplicationFactor: 1}})
	if out[0].Err != nil {
		t.Fatal(out[0].Err)
	}
	if got := len(b.look().Topic("big").Partitions); got != n {
		t.Fatalf("%d partitions", got)
	}
	out = ctl.CreateTopics(t.Context(), []NewTopic{
		{Name: "small", PartitionCount: 1, ReplicationFactor: 1},
		{Name: "huge", PartitionCount: math.MaxInt32, ReplicationFactor: 1},
		{Name: "late", PartitionCount: 1, ReplicationFactor: 1},
	})
	if out[0].Err != nil || !errors.Is(out[1].Err, ErrInvalidPartitions) || !errors.Is(out[2].Err, ErrInvalidPartitions) {
		t.Fatalf("beyond the limit: %+v", out)
	}
	if errs := ctl.DeleteTopics(t.Context(), []string{"big", "small"}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if names, _, err := zk.Children(t.Context(), cluster.TopicsPath, nil); err != nil || len(names) != 0 {
		t.Fatalf("left: %v, %v", names, err)
	}
}

// TestManyTopics: names and all do not fit into one multi.
func TestManyTopics(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	ctl, zk := join(t, c, 1, b)
	var ts []NewTopic
	var names []string
	for i := range 2500 {
		names = append(names, fmt.Sprintf("%0*d", TopicNameMax, i))
		ts = append(ts, NewTopic{Name: names[i], PartitionCount: 1, ReplicationFactor: 1})
	}
	for _, out := range ctl.CreateTopics(t.Context(), ts) {
		coordtest.Must(t, out.Err)
	}
	if n := len(b.look().Topics); n != len(ts) {
		t.Fatalf("%d topics", n)
	}
	for _, err := range ctl.DeleteTopics(t.Context(), names) {
		coordtest.Must(t, err)
	}
	if left, _, err := zk.Children(t.Context(), cluster.TopicsPath, nil); err != nil || len(left) != 0 {
		t.Fatalf("%d left, %v", len(left), err)
	}
}

// TestOthersTools: topics and deletions that another tool asks for by znodes.
func TestOthersTools(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	_, zk := join(t, c, 1, b)
	ctx := t.Context()
	if _, err := zk.Create(ctx, "/brokers/topics/old", []byte(`{"version":1,"partitions":{"1":[1],"0":[1]}}`), zkclient.Persistent); err != nil {
		t.Fatal(err)
	}
	if _, err := zk.Create(ctx, "/brokers/topics/junk", []byte(`junk`), zkclient.Persistent); err != nil {
		t.Fatal(err)
	}
	coordtest.Eventually(t, "the topic is led", func() bool {
		topic := b.look().Topic("old")
		return topic != nil && len(topic.Partitions) == 2 && topic.Partitions[1].Leader == 1 && topic.ID != store.UUID{}
	})
	p, _, err := zk.Get(ctx, "/brokers/topics/old", nil)
	if a, err2 := cluster.DecodeAssignment(p); err != nil || err2 != nil || a.ID != b.look().Topic("old").ID {
		t.Fatalf("%s: %v, %v", p, err, err2)
	}
	for _, name := range []string{"old", "junk", "never"} {
		if _, err := zk.Create(ctx, "/admin/delete_topics/"+name, nil, zkclient.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	coordtest.Eventually(t, "the deletions are done", func() bool {
		names, _, err := zk.Children(ctx, "/admin/delete_topics", nil)
		topics, _, err2 := zk.Children(ctx, cluster.TopicsPath, nil)
		return err == nil && err2 == nil && len(names) == 0 && len(topics) == 0
	})
}

// TestRestart: a broker that comes back is elected anew, with a new epoch; unfinished work is finished.
func TestRestart(t *testing.T) {
	c := startCoordinator(t)
	ctx := t.Context()
	ctl, zk := join(t, c, 1, newBrokers())
	ctl.CreateTopics(ctx, []NewTopic{
		{Name: "t", PartitionCount: 3, ReplicationFactor: 1},
		{Name: "gone", PartitionCount: 2, ReplicationFactor: 1},
	})
	ctl.Stop()
	coordtest.Must(t, zk.Delete(ctx, "/brokers/topics/t/partitions/2/state", -1)) // as if cut short
	_, err := zk.Create(ctx, "/admin/delete_topics/gone", nil, zkclient.Persistent)
	coordtest.Must(t, err)
	coordtest.Must(t, zk.Delete(ctx, "/brokers/topics/gone/partitions/1/state", -1))
	coordtest.Must(t, zk.Close())

	b := newBrokers()
	_, zk = join(t, c, 1, b)
	image := b.look()
	if len(image.Topics) != 1 {
		t.Fatalf("topics: %v", image.Topics)
	}
	for i, want := range []int32{1, 1, 0} {
		if p := image.Topic("t").Partitions[i]; p.LeaderEpoch != want || p.Leader != 1 || !slices.Equal(p.ISR, []int32{1}) {
			t.Errorf("partition %d: %+v", i, p)
		}
	}
	if image.ControllerEpoch != 2 {
		t.Errorf("controller epoch %d", image.ControllerEpoch)
	}
	if _, err := zk.Exists(ctx, "/brokers/topics/gone", nil); !errors.Is(err, zkclient.ErrNoNode) {
		t.Errorf("the deletion was not finished: %v", err)
	}
}

// TestElection: two brokers, one controller; when it goes the other takes over with the next epoch, and
// what the first still writes is refused.
func TestElection(t *testing.T) {
	c := startCoordinator(t)
	ctx := t.Context()
	first, zk1 := join(t, c, 1, newBrokers())
	b := newBrokers()
	second, _ := join(t, c, 2, b)
	if !first.Active() || second.Active() {
		t.Fatalf("active: %v, %v", first.Active(), second.Active())
	}
	if out := second.CreateTopics(ctx, []NewTopic{{Name: "t", PartitionCount: 1, ReplicationFactor: 1}}); !errors.Is(out[0].Err, ErrNotController) {
		t.Fatalf("created by no controller: %v", out[0].Err)
	}
	coordtest.Must(t, zk1.Delete(ctx, cluster.ControllerPath, -1)) // the deposed one does not know yet, or loses the race
	coordtest.Eventually(t, "there is one controller", func() bool { return first.Active() != second.Active() })
	coordtest.Must(t, zk1.Close())
	coordtest.Eventually(t, "the second is the controller", second.Active)
	if b.look().ControllerEpoch < 2 {
		t.Fatalf("epoch %d", b.look().ControllerEpoch)
	}
	out := second.CreateTopics(ctx, []NewTopic{{Name: "t", PartitionCount: 1, ReplicationFactor: 1}})
	coordtest.Must(t, out[0].Err)
	if out := first.CreateTopics(ctx, []NewTopic{{Name: "u", PartitionCount: 1, ReplicationFactor: 1}}); out[0].Err == nil {
		t.Fatal("a deposed controller created a topic")
	}
}

// TestForeign: somebody else's cluster is refused.
func TestForeign(t *testing.T) {
	c := startCoordinator(t)
	zk := c.Client()
	coordtest.Must(t, zk.Ensure(t.Context(), cluster.ControllerPath, []byte(`{"version":2,"brokerid":7,"timestamp":"1","kraftControllerEpoch":-1}`)))
	_, err := cluster.EnsureLayout(t.Context(), zk)
	coordtest.Must(t, err)
	ctl := New(Config{BrokerID: 1, Brokers: newBrokers(), Clock: clock.Real{}, Log: quiet})
	defer ctl.Stop()
	var foreign *cluster.ForeignError
	if err := ctl.Session(t.Context(), zk); !errors.As(err, &foreign) || foreign.ID != 7 {
		t.Fatalf("session: %v", err)
	}
}

// TestAway: the coordinator dies under the controller and comes back.
func TestAway(t *testing.T) {
	c := startCoordinator(t)
	b := newBrokers()
	ctl, zk := join(t, c, 1, b)
	c.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if out := ctl.CreateTopics(ctx, []NewTopic{{Name: "t", PartitionCount: 1, ReplicationFactor: 1}}); out[0].Err == nil {
		t.Fatal("created without a coordinator")
	}
	c.Restart()
	ctl.Reread()
	coordtest.Eventually(t, "topics can be created again", func() bool {
		out := ctl.CreateTopics(t.Context(), []NewTopic{{Name: "u", PartitionCount: 1, ReplicationFactor: 1}})
		return out[0].Err == nil || errors.Is(out[0].Err, ErrTopicExists)
	})
	if first, _, err := ctl.ProducerIDBlock(t.Context()); err != nil || first != 0 {
		t.Fatalf("block %d, %v", first, err)
	}
	if first, n, err := ctl.ProducerIDBlock(t.Context()); err != nil || first != 1000 || n != 1000 {
		t.Fatalf("block %d, %v", first, err)
	}
	p, _, err := zk.Get(t.Context(), cluster.ProducerIDBlockPath, nil)
	coordtest.Must(t, err)
	if string(p) != `{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}` {
		t.Fatalf("block: %s", p)
	}
}
