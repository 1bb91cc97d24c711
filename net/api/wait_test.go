package api_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/coord/config"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/net/api"
	"platter/net/server"
	"platter/replication/replica"
)

// follower is a partition whose followers do nothing: acks=-1 is never reached.
type follower struct {
	api.Partition
	mu        sync.Mutex
	next      int64
	cancelled int
	lost      bool // not the leader any more
}

func (f *follower) Append(a *replica.Append) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		a.Done(commitlog.Appended{Err: replica.ErrNotLeader})
		return nil
	}
	done := commitlog.Appended{BaseOffset: f.next, LastOffset: f.next, LogAppendTimeMs: -1}
	f.next++
	if a.Acks != -1 {
		a.Done(done)
		return nil
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			f.mu.Lock()
			f.cancelled++
			f.mu.Unlock()
			done.Err = replica.ErrTimeout
			a.Done(done)
		})
	}
}

func (f *follower) State(int32) (replica.State, error) {
	return replica.State{Leader: 2, LeaderEpoch: 5, IsLeader: !f.lost}, nil
}

func (f *follower) cancels() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancelled
}

func (f *follower) Replica(tp store.TP) (api.Partition, error) {
	if tp.Topic != "t" {
		return nil, replica.ErrUnknownPartition
	}
	return f, nil
}

func (f *follower) TopicName(store.UUID) (string, bool) { return "", false }

// startFollower serves a topic "t" whose one partition broker 2 leads, as the image says.
func startFollower(t *testing.T, f api.Replicas) *broker {
	t.Helper()
	cfg, _, err := config.Load(nil, nil)
	must(t, err)
	endpoint := func(host string) []cluster.Endpoint {
		return []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: host, Port: 9092}}
	}
	topic := &cluster.Topic{Name: "t", Partitions: []cluster.Partition{{Leader: 2, LeaderEpoch: 5, Replicas: []int32{1, 2}, ISR: []int32{2}}}}
	other := &cluster.Topic{Name: "other", Partitions: []cluster.Partition{{Leader: 3, Replicas: []int32{3}}, {Leader: 4, Replicas: []int32{4}}}}
	img := &cluster.Image{
		ControllerID: 2,
		Brokers:      []cluster.Broker{{ID: 1, Endpoints: endpoint("one")}, {ID: 2, Endpoints: endpoint("two"), Rack: "r"}, {ID: 3}},
		Topics:       map[string]*cluster.Topic{"t": topic, "other": other},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	h := api.New(api.Deps{BrokerID: 1, Replicas: f, Store: offlineDirs{}, Image: func() *cluster.Image { return img }, Config: cfg, Clock: clock.Real{}})
	h.Joined()
	s, err := server.New(server.Config{Listeners: []server.Listener{{Name: "PLAINTEXT", Listener: l}}, Handler: h, DrainMax: 100 * time.Millisecond})
	must(t, err)
	s.Start()
	t.Cleanup(func() { s.Close(t.Context()) })
	return &broker{t: t, addr: l.Addr().String(), server: s}
}

func TestAcksAllEndsWithItsTime(t *testing.T) {
	f := new(follower)
	p := startFollower(t, f).dial()
	slow := produceRequest("t", [16]byte{}, 0, -1, records(1, "a"))
	slow.TimeoutMillis = 50
	fast := produceRequest("t", [16]byte{}, 0, 1, records(1, "b"))
	slowID := p.send(9, slow)
	fastID := p.send(9, fast)
	// The second is done before the first, and answered behind it.
	code(t, "acks=-1", p.receive(slowID, slow).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, api.RequestTimedOut)
	got := p.receive(fastID, fast).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if got.ErrorCode != 0 || got.BaseOffset != 1 {
		t.Fatalf("acks=1: %v at %d", api.Code(got.ErrorCode), got.BaseOffset)
	}
}

func TestAcksAllEndsWithItsPeer(t *testing.T) {
	f := new(follower)
	p := startFollower(t, f).dial()
	req := produceRequest("t", [16]byte{}, 0, -1, records(1, "a"))
	req.TimeoutMillis = 1 << 30
	for range 3 {
		p.send(9, req)
	}
	p.nc.Close()
	for i := 0; f.cancels() < 3; i++ {
		if i == 12_000 {
			t.Fatalf("%d of 3 waits have ended", f.cancels())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestTheLeaderIsTold(t *testing.T) {
	p := startFollower(t, &follower{lost: true}).dial()
	resp := ask[*kmsg.ProduceResponse](p, 10, produceRequest("t", [16]byte{}, 0, 1, records(1, "a")))
	part := resp.Topics[0].Partitions[0]
	code(t, "produce", part.ErrorCode, api.NotLeaderOrFollower)
	if part.CurrentLeader.LeaderID != 2 || part.CurrentLeader.LeaderEpoch != 5 {
		t.Fatalf("leader: %+v", part.CurrentLeader)
	}
	if len(resp.Brokers) != 1 || resp.Brokers[0].Host != "two" || *resp.Brokers[0].Rack != "r" {
		t.Fatalf("endpoints: %+v", resp.Brokers)
	}
}

func TestMetadataOfACluster(t *testing.T) {
	p := startFollower(t, new(follower)).dial()
	resp := ask[*kmsg.MetadataResponse](p, 9, kmsg.NewPtrMetadataRequest())
	if len(resp.Brokers) != 2 || resp.ControllerID != 2 { // broker 3 is not on this listener
		t.Fatalf("brokers %+v, controller %d", resp.Brokers, resp.ControllerID)
	}
	part := ask[*kmsg.MetadataResponse](p, 9, metadataFor("t")).Topics[0].Partitions[0]
	if part.Leader != 2 || part.LeaderEpoch != 5 || len(part.Replicas) != 2 || len(part.ISR) != 1 || len(part.OfflineReplicas) != 0 {
		t.Fatalf("partition: %+v", part)
	}
	other := ask[*kmsg.MetadataResponse](p, 9, metadataFor("other")).Topics[0].Partitions
	code(t, "a leader on another listener", other[0].ErrorCode, api.ListenerNotFound)
	code(t, "a leader that is gone", other[1].ErrorCode, api.LeaderNotAvailable)
	if other[1].Leader != -1 || len(other[1].OfflineReplicas) != 1 {
		t.Fatalf("partition: %+v", other[1])
	}
}
