package api_test

import (
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/memdisk"
	"platter/net/api"
	"platter/replication/core"
	"platter/replication/replica"
)

// led are partitions of topic "t" that broker 1 leads, over real logs, with followers 2 and 3 in sync.
type led []*replica.Replica

func newLed(t *testing.T, n int) led {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{FS: memdisk.New(memdisk.Options{}), Clock: clock.Real{}, Dirs: []string{"/data"}, BrokerID: 1}, nil)
	must(t, err)
	t.Cleanup(func() { s.Close(true) })
	all := make(led, n)
	for i := range all {
		l, err := s.Create(store.TP{Topic: "t", Partition: int32(i)}, store.UUID{1}, commitlog.DefaultConfig())
		must(t, err)
		all[i] = replica.New(replica.Config{Self: 1, TopicID: store.UUID{1}, Log: l, MinISR: 1, LagTimeMaxMs: 1000})
		must(t, all[i].Assign(core.Assignment{Leader: 1, ISR: []int32{1, 2, 3}, Replicas: []int32{1, 2, 3}}, 0))
	}
	return all
}

func (s led) Replica(tp store.TP) (api.Partition, error)  { return s[tp.Partition], nil }
func (s led) TopicName(store.UUID) (name string, ok bool) { return "", false }

// produce appends records one after the other, each once the one before is committed.
func (s led) produce(partition, count int) {
	for range count {
		done := make(chan commitlog.Appended, 1)
		s[partition].Append(&replica.Append{Batches: []batch.Batch{batch.Batch(records(1, "v"))}, Acks: -1, Done: func(a commitlog.Appended) { done <- a }})
		<-done
	}
}

// tryFetch is ask on a connection that may end.
func tryFetch(p *peer, req *kmsg.FetchRequest) (*kmsg.FetchResponse, error) {
	req.SetVersion(12)
	p.next++
	if _, err := p.nc.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, p.next)); err != nil {
		return nil, err
	}
	body, err := p.frame()
	if err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(12)
	return resp, resp.ReadFrom(body[5:]) // behind the correlation id, and no tags
}

// followOver fetches as a follower does, in a session whose fetches wait for as long as it takes, until its connection ends.
func followOver(p *peer, id int32, offsets []int64) {
	session, epoch := int32(0), int32(0)
	changed := make([]bool, len(offsets))
	for i := range changed {
		changed[i] = true
	}
	for {
		req := sessionFetch(session, epoch)
		req.ReplicaID, req.MinBytes, req.MaxWaitMillis = id, 1, 1<<30
		if session == 0 {
			req.MaxWaitMillis = 0
		}
		topic := fetchRequest("t", [16]byte{}, 0, 0).Topics[0]
		one := topic.Partitions[0]
		topic.Partitions = nil
		for i := range offsets {
			if changed[i] {
				one.Partition, one.FetchOffset, one.CurrentLeaderEpoch = int32(i), offsets[i], 0
				topic.Partitions = append(topic.Partitions, one)
				changed[i] = false
			}
		}
		if req.Topics = nil; len(topic.Partitions) > 0 {
			req.Topics = append(req.Topics, topic)
		}
		resp, err := tryFetch(p, req)
		if err != nil || resp.ErrorCode != 0 {
			return
		}
		session, epoch = resp.SessionID, epoch+1
		for _, t := range resp.Topics {
			for _, q := range t.Partitions {
				bs, _ := batch.Split(nil, q.RecordBatches)
				if len(bs) > 0 {
					offsets[q.Partition] = bs[len(bs)-1].LastOffset() + 1
					changed[q.Partition] = true
				}
			}
		}
	}
}

// TestEachAppendWakes: whatever is appended while followers' fetches wait, with other things moving in between, reaches both
// of them. Their fetches end by nothing else, so one wake-up that is missed is the end of all progress.
func TestEachAppendWakes(t *testing.T) {
	const partitions, count = 3, 200
	all := newLed(t, partitions)
	b := startFollower(t, all)
	var followers sync.WaitGroup
	var ends []*peer
	for id := int32(2); id <= 3; id++ {
		p := b.dial()
		must(t, p.nc.SetDeadline(time.Now().Add(5*time.Minute)))
		ends = append(ends, p)
		followers.Go(func() { followOver(p, id, make([]int64, partitions)) })
	}
	var producers sync.WaitGroup
	for n := range 2 * partitions {
		producers.Go(func() { all.produce(n%partitions, count) })
	}
	over := make(chan struct{})
	go func() {
		producers.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(2 * time.Minute):
		for i, r := range all {
			st, _ := r.State(-1)
			t.Errorf("partition %d: %+v", i, st)
		}
	}
	for _, p := range ends {
		p.nc.Close()
	}
	followers.Wait()
}

// TestSilentFollower: a follower whose session goes silent lags from its last fetch on, by the clock by which that is judged.
func TestSilentFollower(t *testing.T) {
	all := newLed(t, 1)
	p := startFollower(t, all).dial()
	fetch := func(req *kmsg.FetchRequest) *kmsg.FetchResponse {
		req.ReplicaID, req.MaxWaitMillis = 2, 0
		return ask[*kmsg.FetchResponse](p, 12, req)
	}
	id := fetch(sessionFetch(0, 0, 0)).SessionID
	for epoch := range int32(3) {
		fetch(sessionFetch(id, epoch+1))
	}
	all[0].Append(&replica.Append{Batches: []batch.Batch{batch.Batch(records(1, "v"))}, Acks: 1, Done: func(commitlog.Appended) {}})
	all[0].Tick(clock.ElapsedMs(clock.Real{}) + 1500)
	want, proposed := all[0].Proposal()
	if !proposed {
		t.Fatal("it does not lag")
	}
	for _, m := range want.ISR {
		if m.Broker == 2 {
			t.Errorf("it stays in the in-sync set: %+v", want)
		}
	}
}
