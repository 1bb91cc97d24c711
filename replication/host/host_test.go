package host

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/memdisk"
	"platter/replication/replica"
)

func openHost(t *testing.T) (*Host, *store.Store) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{
		FS: memdisk.New(memdisk.Options{}), Clock: clock.Real{}, Dirs: []string{"/data"}, BrokerID: 1,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, &store.Progress{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(true) })
	return New(Config{Broker: 1, Store: s, Clock: clock.Real{}}), s
}

func state(topic string, p int32, id byte, epoch int32) PartitionState {
	return PartitionState{
		TP: store.TP{Topic: topic, Partition: p}, TopicID: store.UUID{0: id}, Leader: 1, LeaderEpoch: epoch,
		ISR: []int32{1}, Replicas: []int32{1}, PartitionEpoch: epoch, MinISR: 1, Config: commitlog.DefaultConfig(),
	}
}

func TestApplyAndStop(t *testing.T) {
	h, s := openHost(t)
	var states []PartitionState
	for topic := range 20 {
		for p := range int32(10) {
			states = append(states, state(fmt.Sprintf("t%d", topic), p, byte(topic+1), 0))
		}
	}
	for i, err := range h.Apply(states) {
		if err != nil {
			t.Fatalf("%s: %v", states[i].TP, err)
		}
	}
	n := 0
	h.All(func(tp store.TP, r *replica.Replica) {
		n++
		if st, err := r.State(0); err != nil || !st.IsLeader || st.TopicID == (store.UUID{}) {
			t.Errorf("%s: %+v, %v", tp, st, err)
		}
	})
	if n != 200 {
		t.Errorf("%d replicas", n)
	}
	if name, ok := h.TopicName(store.UUID{0: 3}); name != "t2" || !ok {
		t.Errorf("topic %q, %v", name, ok)
	}

	for i, err := range h.Stop([]store.TP{{Topic: "t2", Partition: 0}, {Topic: "t2", Partition: 99}, {Topic: "none"}}, true) {
		if err != nil {
			t.Errorf("stop %d: %v", i, err)
		}
	}
	if s.Get(store.TP{Topic: "t2"}) != nil {
		t.Error("the log is still there")
	}
	if _, ok := h.TopicName(store.UUID{0: 3}); !ok {
		t.Error("the topic's name went with one of its partitions")
	}
	var rest []store.TP
	for p := range int32(10) {
		rest = append(rest, store.TP{Topic: "t2", Partition: p})
	}
	h.Stop(rest, false)
	if _, ok := h.TopicName(store.UUID{0: 3}); ok {
		t.Error("the topic's name is still there")
	}
	if s.Get(store.TP{Topic: "t2", Partition: 5}) == nil {
		t.Error("a log is gone that was only to be stopped")
	}
	if _, err := h.Replica(store.TP{Topic: "t2", Partition: 5}); !errors.Is(err, replica.ErrUnknownPartition) {
		t.Errorf("stopped replica: %v", err)
	}
	h.Close()
	h.All(func(tp store.TP, _ *replica.Replica) { t.Errorf("%s after Close", tp) })
}

func TestFencing(t *testing.T) {
	h, _ := openHost(t)
	if err := h.Apply([]PartitionState{state("t", 0, 1, 5)})[0]; err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s    PartitionState
		want error
	}{
		"older epoch":   {state("t", 0, 1, 4), replica.ErrStaleEpoch},
		"again":         {state("t", 0, 1, 5), nil},
		"another topic": {state("t", 0, 2, 9), ErrStaleTopic},
	} {
		if err := h.Apply([]PartitionState{c.s})[0]; !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tp := store.TP{Topic: "t"}
	r, _ := h.Replica(tp)
	h.Stop([]store.TP{tp}, false)
	if err := h.Apply([]PartitionState{state("t", 0, 2, 0)})[0]; err != nil {
		t.Errorf("the next topic of the name: %v", err)
	}
	if next, _ := h.Replica(tp); next == r {
		t.Error("the replica is the former topic's")
	}
	if hw, ok := h.HighWatermark(tp); hw != 0 || !ok {
		t.Errorf("high watermark %d, %v", hw, ok)
	}
	if _, ok := h.HighWatermark(store.TP{Topic: "none"}); ok {
		t.Error("a high watermark of nothing")
	}
}

func TestReconfigure(t *testing.T) {
	h, s := openHost(t)
	h.Apply([]PartitionState{state("t", 0, 1, 0), state("t", 1, 1, 0), state("u", 0, 2, 0)})
	c := commitlog.DefaultConfig()
	c.MaxMessageBytes = 77
	h.Reconfigure("t", c, 1)
	for tp, want := range map[store.TP]int{{Topic: "t", Partition: 1}: 77, {Topic: "u"}: commitlog.DefaultConfig().MaxMessageBytes} {
		if got := s.Get(tp).Config().MaxMessageBytes; got != want {
			t.Errorf("%s: %d", tp, got)
		}
	}
}
