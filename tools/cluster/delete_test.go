package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestDeletedRecordsStayDeleted: once a deletion of records was answered it holds whoever leads next.
func TestDeletedRecordsStayDeleted(t *testing.T) {
	c, adm := threeBrokers(t, "t", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers[0].Addr(), c.Brokers[1].Addr(), c.Brokers[2].Addr()), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for range 5 {
		if err := cl.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := Partitions(ctx, adm, "t")
	if err != nil {
		t.Fatal(err)
	}
	below := kadm.Offsets{}
	below.AddOffset("t", 0, 3, -1)
	deleted, err := adm.DeleteRecords(ctx, below)
	c.Brokers[parts[0].Leader].Kill()
	if err := errors.Join(err, deleted.Error()); err != nil {
		t.Fatal(err)
	}
	if r, _ := deleted.Lookup("t", 0); r.LowWatermark != 3 {
		t.Errorf("the low watermark is %d", r.LowWatermark)
	}
	c.Await(adm, "t", "another leader", func(ps []kadm.PartitionDetail) bool {
		return ps[0].Leader >= 0 && ps[0].Leader != parts[0].Leader
	})
	starts, err := adm.ListStartOffsets(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := starts.Lookup("t", 0); o.Err != nil || o.Offset != 3 {
		t.Errorf("with another leader the log starts at %d (%v)", o.Offset, o.Err)
	}
}

// TestTopicIsDeletedWhileABrokerIsAway: the deletion is answered at once, and a topic of the same name can be made when the
// broker is back, for which the request waits.
func TestTopicIsDeletedWhileABrokerIsAway(t *testing.T) {
	c, adm := threeBrokers(t, "t", 2)
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	c.Brokers[2].Stop()
	deleted, err := adm.DeleteTopics(ctx, "t")
	if err := errors.Join(err, deleted.Error()); err != nil {
		t.Fatal(err)
	}
	if topics, err := adm.ListTopics(ctx); err != nil || topics.Has("t") {
		t.Errorf("after the deletion: %v %v", topics.Names(), err)
	}
	made := make(chan error, 1)
	go func() {
		cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers[0].Addr()))
		if err == nil {
			defer cl.Close()
			err = create(ctx, cl, 0, "t")
		}
		made <- err
	}()
	select {
	case err := <-made:
		t.Errorf("the name is free while a replica of the old topic is left: %v", err)
		made <- nil
	case <-time.After(time.Second):
	}
	c.Brokers[2].Start()
	if err := <-made; err != nil {
		t.Error(err)
	}
	c.AwaitWhole(adm, "t")
}
