package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/engine/store"
)

// TestPowerCut cuts the power of broker and coordinator, on one disk, at some operation of a script of
// creations and deletions. What was answered holds, each topic is led in all its partitions, and
// takes records.
func TestPowerCut(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { powerCut(t, seed) })
	}
}

func powerCut(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	m := newMachine(t)
	m.mustStart()
	m.disk.CrashAt(m.disk.Count()+1+rng.Int64N(600), seed)

	want := map[string]bool{} // what answers said: true: is there, false: is not
	for !m.disk.Crashed() {
		name := fmt.Sprintf("t%d", rng.IntN(5))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if rng.IntN(3) > 0 {
			out := m.node.Controller().CreateTopics(ctx, []controller.NewTopic{{Name: name, PartitionCount: int32(1 + rng.IntN(5)), ReplicationFactor: 1}})
			answer(want, name, out[0].Err, true, controller.ErrTopicExists)
		} else {
			err := m.node.Controller().DeleteTopics(ctx, []string{name})[0]
			answer(want, name, err, false, controller.ErrUnknownTopic)
		}
		cancel()
	}
	m.kill()
	m.zk.Stop()
	m.disk.Crash(seed)
	m.zk.Restart()
	m.mustStart()
	defer m.stop()

	image := m.node.Image()
	for name, exists := range want {
		if (image.Topic(name) != nil) != exists {
			t.Errorf("%s: there is %v, the answers said %v", name, image.Topic(name) != nil, exists)
		}
	}
	for name, topic := range image.Topics {
		for i, p := range topic.Partitions {
			if p.Leader != 1 {
				t.Errorf("%s-%d: %+v", name, i, p)
				continue
			}
			m.produce(store.TP{Topic: name, Partition: int32(i)})
		}
	}
	zk := m.zk.Client()
	names, _, err := zk.Children(t.Context(), cluster.TopicsPath, nil)
	if err != nil || len(names) != len(image.Topics) {
		t.Errorf("the coordinator has %v, metadata %d topics, %v", names, len(image.Topics), err)
	}
}

// answer keeps what an answer says of a topic. Any other error leaves it open.
func answer(want map[string]bool, name string, err error, exists bool, already error) {
	if err == nil || errors.Is(err, already) {
		want[name] = exists
	} else {
		delete(want, name)
	}
}
