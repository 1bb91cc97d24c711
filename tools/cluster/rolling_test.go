package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/tools/proc"
)

// whoControls waits until all brokers name the same controller, and gives it.
func whoControls(t *testing.T, cl *kgo.Client, brokers int) int32 {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 60*time.Second; time.Sleep(20 * time.Millisecond) {
		named := map[int32]int{}
		for id := range brokers {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			req := kmsg.NewPtrMetadataRequest()
			req.Topics = []kmsg.MetadataRequestTopic{}
			resp, err := cl.Broker(id).RetriableRequest(ctx, req)
			cancel()
			if err == nil {
				named[resp.(*kmsg.MetadataResponse).ControllerID]++
			}
		}
		for id, n := range named {
			if n == brokers && id >= 0 {
				return id
			}
		}
	}
	t.Fatal("the brokers do not agree on a controller")
	return -1
}

// create asks one broker once for a topic with three replicas.
func create(ctx context.Context, cl *kgo.Client, broker int, topic string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 60_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, 2, 3
	req.Topics = append(req.Topics, rt)
	resp, err := cl.Broker(broker).Request(ctx, req)
	if err != nil {
		return err
	}
	answer := resp.(*kmsg.CreateTopicsResponse).Topics[0]
	if err = kerr.ErrorForCode(answer.ErrorCode); err != nil && answer.ErrorMessage != nil {
		err = fmt.Errorf("%w: %s", err, *answer.ErrorMessage)
	}
	return err
}

// TestTopicsAreCreatedWhileBrokersRestart: a client of a broker that stays gets every topic that it asks for once, with
// all the replicas, while first the controller and then another broker is restarted.
func TestTopicsAreCreatedWhileBrokersRestart(t *testing.T) {
	bin := proc.Binary(t)
	c := New(t, bin, 3, StartCoordinator(t, bin).Addr(), nil)
	c.Start()
	ctx, cancel := context.WithTimeout(t.Context(), 180*time.Second)
	defer cancel()
	adm := c.Admin()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers[0].Addr(), c.Brokers[1].Addr(), c.Brokers[2].Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	first := int(whoControls(t, cl, 3))
	stays := (first + 1) % 3
	made := 0
	if err := create(ctx, cl, stays, "made-0"); err != nil { // by which the brokers are known to have replicas
		t.Fatal(err)
	}
	for _, victim := range []int{first, (first + 2) % 3} {
		c.AwaitWhole(adm, fmt.Sprint("made-", made))
		back := make(chan error, 1)
		go func() {
			b := c.Brokers[victim]
			b.Signal(syscall.SIGTERM)
			if err := b.Wait(60 * time.Second); err != nil {
				back <- err
				return
			}
			time.Sleep(time.Second) // topics are created while it is away
			b.Launch()
			back <- b.WaitReady(60 * time.Second)
		}()
		for over := false; !over; {
			select {
			case err := <-back:
				if err != nil {
					t.Fatal(err)
				}
				over = true
			default:
			}
			time.Sleep(20 * time.Millisecond)
			made++
			begun := time.Now()
			if err := create(ctx, cl, stays, fmt.Sprint("made-", made)); err != nil {
				if !over {
					<-back // which has the process in its hands
				}
				t.Fatalf("topic %d, while broker %d is restarted, after %v: %v", made, victim, time.Since(begun), err)
			}
		}
	}
	t.Logf("%d topics", made)
	for i := range made + 1 {
		c.AwaitWhole(adm, fmt.Sprint("made-", i))
	}
}

// TestStoppingBrokerSaysWhoLeads: a client that is connected to a broker that stops is told that others lead now,
// before its connection ends.
func TestStoppingBrokerSaysWhoLeads(t *testing.T) {
	c, adm := threeBrokers(t, "t", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	parts, err := Partitions(ctx, adm, "t")
	if err != nil {
		t.Fatal(err)
	}
	leader := int(parts[0].Leader)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers[leader].Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ask := func() error {
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID = -1
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = "t"
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Timestamp = -1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		resp, err := cl.Broker(leader).Request(ctx, req)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode)
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	c.Brokers[leader].Signal(syscall.SIGTERM)
	for {
		err := ask()
		switch {
		case err == nil:
			time.Sleep(time.Millisecond)
			continue
		case !errors.Is(err, kerr.NotLeaderForPartition):
			t.Errorf("the stopping leader says %v", err)
		}
		break
	}
	if err := c.Brokers[leader].Wait(60 * time.Second); err != nil {
		t.Error(err)
	}
}

// TestStoppingControllerGivesUpFirst: when a controller that was told to stop takes no more connections, all others name
// another one already.
func TestStoppingControllerGivesUpFirst(t *testing.T) {
	bin := proc.Binary(t)
	c := New(t, bin, 3, StartCoordinator(t, bin).Addr(), nil)
	c.Start()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers[0].Addr(), c.Brokers[1].Addr(), c.Brokers[2].Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	first := int(whoControls(t, cl, 3))
	c.Brokers[first].Signal(syscall.SIGTERM)
	for {
		conn, err := net.Dial("tcp", c.Brokers[first].Addr())
		if err != nil {
			break
		}
		conn.Close()
		time.Sleep(time.Millisecond)
	}
	for id := range 3 {
		if id == first {
			continue
		}
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{}
		resp, err := cl.Broker(id).Request(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if now := resp.(*kmsg.MetadataResponse).ControllerID; now < 0 || now == int32(first) {
			t.Errorf("broker %d names %d as the controller, which is gone (%d was)", id, now, first)
		}
	}
	if err := c.Brokers[first].Wait(60 * time.Second); err != nil {
		t.Error(err)
	}
}
