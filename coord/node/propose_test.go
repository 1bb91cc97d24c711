package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"platter/coord/controller"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/memdisk"
	"platter/replication/core"
	"platter/replication/replica"
)

// judge is the controller, elsewhere.
type judge struct {
	Peers
	mu      sync.Mutex
	asked   []string
	answers []func(ch *controller.ISRChange) (controller.ISRAnswer, error) // the last one stays
}

func (j *judge) AlterPartition(_ context.Context, changes []controller.ISRChange) ([]controller.ISRAnswer, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	answer := j.answers[0]
	if len(j.answers) > 1 {
		j.answers = j.answers[1:]
	}
	var out []controller.ISRAnswer
	for i := range changes {
		ch := &changes[i]
		j.asked = append(j.asked, fmt.Sprintf("%d/%d %v", ch.LeaderEpoch, ch.PartitionEpoch, ch.ISR))
		a, err := answer(ch)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (j *judge) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.asked)
}

func grant(ch *controller.ISRChange) (controller.ISRAnswer, error) {
	return controller.ISRAnswer{Leader: 1, LeaderEpoch: ch.LeaderEpoch, PartitionEpoch: ch.PartitionEpoch + 1, ISR: []int32{1, 2}}, nil
}

func answerWith(err error) func(*controller.ISRChange) (controller.ISRAnswer, error) {
	return func(*controller.ISRChange) (controller.ISRAnswer, error) { return controller.ISRAnswer{Err: err}, nil }
}

func unreachable(*controller.ISRChange) (controller.ISRAnswer, error) {
	return controller.ISRAnswer{}, errors.New("connection refused")
}

// proposing is a leader whose follower is about to join, with a running proposer.
func proposing(t *testing.T, j *judge) *replica.Replica {
	s, err := store.Open(t.Context(), store.Config{
		FS: memdisk.New(memdisk.Options{}), Clock: clock.Real{}, Dirs: []string{"/data"}, BrokerID: 1, Log: slog.New(slog.DiscardHandler),
	}, &store.Progress{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(true) })
	n := &Node{cfg: Config{Clock: clock.Real{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, peers: j, control: &controller.Controller{}}
	n.life, n.end = context.WithCancel(context.Background())
	p := newProposer(n)
	ended := make(chan struct{})
	go func() { p.run(); close(ended) }()
	t.Cleanup(func() { n.end(); <-ended })

	tp := store.TP{Topic: "t"}
	l, err := s.Create(tp, store.UUID{1}, commitlog.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	r := replica.New(replica.Config{Self: 1, TopicID: store.UUID{1}, Log: l, MinISR: 1, Wanted: func(r *replica.Replica) { p.want(tp, r) }})
	lead(t, r, 3)
	fetch(t, r)
	return r
}

func lead(t *testing.T, r *replica.Replica, partitionEpoch int32) {
	t.Helper()
	if err := r.Assign(core.Assignment{Leader: 1, LeaderEpoch: 2, PartitionEpoch: partitionEpoch, ISR: []int32{1}, Replicas: []int32{1, 2}}, 0); err != nil {
		t.Fatal(err)
	}
}

func fetch(t *testing.T, r *replica.Replica) {
	t.Helper()
	if err := r.FollowerFetched(core.Fetch{Broker: 2, BrokerEpoch: 7, LeaderEpoch: 2}); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("did not come about: " + what)
		}
	}
}

func isr(r *replica.Replica) string {
	in, _ := r.InSync()
	return fmt.Sprint(in)
}

// TestProposer: what a leader wants is asked for until the controller has answered.
func TestProposer(t *testing.T) {
	for name, before := range map[string]func(*controller.ISRChange) (controller.ISRAnswer, error){
		"at once":                       grant,
		"a controller that is away":     unreachable,
		"one that is none":              answerWith(controller.ErrNotController),
		"another state, not heard of":   answerWith(controller.ErrInvalidUpdate),
		"a leader epoch, not heard of":  answerWith(controller.ErrFencedLeader),
		"a follower not eligible, once": answerWith(controller.ErrIneligible),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &judge{answers: []func(*controller.ISRChange) (controller.ISRAnswer, error){before, grant}}
			r := proposing(t, j)
			eventually(t, "the set grows", func() bool {
				if _, open := r.Proposal(); !open && isr(r) != "[1 2]" {
					fetch(t, r) // after a refusal the next fetch asks again
				}
				return isr(r) == "[1 2]"
			})
			if j.asked[0] != "2/3 [{1 -1} {2 7}]" {
				t.Errorf("asked for %v", j.asked)
			}
		})
	}
}

// TestProposerOvertaken: the controller's own word answers a question too, and an end of the replica ends it.
func TestProposerOvertaken(t *testing.T) {
	j := &judge{answers: []func(*controller.ISRChange) (controller.ISRAnswer, error){unreachable}}
	r := proposing(t, j)
	eventually(t, "it is asked again", func() bool { return j.count() > 1 })
	if err := r.Assign(core.Assignment{Leader: 1, LeaderEpoch: 2, PartitionEpoch: 4, ISR: []int32{1, 2}, Replicas: []int32{1, 2}}, 0); err != nil {
		t.Fatal(err)
	}
	if p, open := r.Proposal(); open {
		t.Errorf("still wanted: %+v", p)
	}
	lead(t, r, 5)
	fetch(t, r)
	before := j.count()
	eventually(t, "the new question is asked", func() bool { return j.count() > before })
	r.Stop()
}

// TestProposerLateRefusal: a refusal takes effect after a pause; by then the controller may have spoken, and another
// proposal may be under way that it says nothing of.
func TestProposerLateRefusal(t *testing.T) {
	j := &judge{answers: []func(*controller.ISRChange) (controller.ISRAnswer, error){answerWith(controller.ErrIneligible), unreachable}}
	r := proposing(t, j)
	eventually(t, "it is asked", func() bool { return j.count() > 0 })
	lead(t, r, 4)
	fetch(t, r) // another proposal, whose fate is unknown
	before := j.count()
	eventually(t, "it is asked for longer than a refusal waits", func() bool { return j.count() > before+2*int(refusedDelay/askDelay) })
	if _, open := r.Proposal(); !open {
		t.Error("the larger set does not count any more")
	}
}
