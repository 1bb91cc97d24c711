package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/engine/store"
	"platter/replication/follow"
	"platter/replication/replica"
)

// Peers is the way to the other brokers (net/peer).
type Peers interface {
	controller.Brokers
	follow.Leaders
	// AlterPartition and ControlledShutdown ask the controller, when that is another broker.
	AlterPartition(context.Context, []controller.ISRChange) ([]controller.ISRAnswer, error)
	ControlledShutdown(context.Context) (remaining []store.TP, err error)
	CreateTopics(context.Context, []controller.NewTopic) []controller.Created
	Close()
}

// Self is what Peers have to know of this broker.
type Self struct {
	BrokerID int32
	Epoch    func() int64
	Image    func() *cluster.Image
	// Local takes the controller's words for this very broker.
	Local controller.Brokers
}

// LeaderAndISR takes a controller's word that came over the wire. Errors by partition, in the order given;
// controller.ErrStaleController, controller.ErrStaleBroker.
func (n *Node) LeaderAndISR(ctx context.Context, r controller.LeaderAndISR) ([]error, error) {
	return n.local.LeaderAndISR(ctx, n.self, r)
}

// StopReplica is LeaderAndISR for replicas that end.
func (n *Node) StopReplica(ctx context.Context, r controller.StopReplica) ([]error, error) {
	return n.local.StopReplica(ctx, n.self, r)
}

// UpdateMetadata is LeaderAndISR for the picture of the cluster.
func (n *Node) UpdateMetadata(ctx context.Context, r controller.UpdateMetadata) error {
	return n.local.UpdateMetadata(ctx, n.self, r)
}

// CreateTopics is the controller's, wherever it is. While there is none, it waits for the next one until ctx ends.
func (n *Node) CreateTopics(ctx context.Context, ts []controller.NewTopic) []controller.Created {
	for {
		var out []controller.Created
		if n.peers == nil || n.control.Active() {
			out = n.control.CreateTopics(ctx, ts)
		} else {
			out = n.peers.CreateTopics(ctx, ts)
		}
		if n.peers == nil || !slices.ContainsFunc(out, func(c controller.Created) bool { return errors.Is(c.Err, controller.ErrNotController) }) {
			return out
		}
		select {
		case <-ctx.Done():
			return out
		case <-n.life.Done():
			return out
		case <-n.cfg.Clock.After(controllerPoll):
		}
	}
}

// controllerPoll is how often it is looked for the next controller while there is none.
const controllerPoll = 20 * time.Millisecond

// Joined waits until the controller has told this broker of the cluster, or ctx ends.
func (n *Node) Joined(ctx context.Context) error {
	for {
		if _, ok := n.Image().Broker(n.id); ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.cfg.Clock.After(joinPoll):
		}
	}
}

const joinPoll = 2 * time.Millisecond

// HandOver asks the controller to let others lead what this broker leads (controlled.shutdown.*), before it stops
// to serve. What cannot be handed over, and a controller that does not answer, only cost time: the error is for
// the log.
func (n *Node) HandOver(ctx context.Context) error {
	if !n.cfg.Shutdown.Enabled || n.peers == nil || len(n.Image().Brokers) < 2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handOverMax)
	defer cancel()
	n.resign(ctx)
	for try := 0; ; try++ {
		remaining, err := n.handOver(ctx)
		switch {
		case err == nil && len(remaining) == 0:
			n.linger(ctx)
			n.Host().All(func(_ store.TP, r *replica.Replica) { r.GiveUp() })
			return nil
		case try < n.cfg.Shutdown.Retries: // a follower that is about to be in sync may be by then
		case err == nil:
			n.log("nobody can take over some partitions", "count", len(remaining))
			n.linger(ctx)
			return nil
		default:
			n.log("leaderships were not handed over", "err", err)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-n.cfg.Clock.After(min(n.cfg.Shutdown.Backoff, handOverBackoffMax)):
		}
	}
}

// handOverMax bounds the tries: a broker that is told to stop is expected to be gone within some ten seconds, and whoever
// leads after it is found once its registration ends, too.
const handOverMax = 6 * time.Second

// resign lets another broker be the controller, and waits until it is, for a while.
func (n *Node) resign(ctx context.Context) {
	if !n.control.Active() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, resignTimeout)
	defer cancel()
	if err := n.control.Resign(ctx); err != nil {
		n.log("this broker stays the controller until it stops", "err", err)
		return
	}
	for {
		img := n.Image()
		if _, live := img.Broker(img.ControllerID); live && img.ControllerID != n.id {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-n.cfg.Clock.After(controllerPoll):
		}
	}
}

// resignTimeout bounds the wait for the next controller.
const resignTimeout = 2 * time.Second

// linger goes on serving for a while: clients that ask this broker are told who leads and coordinates now, instead of
// losing their connections without a word.
func (n *Node) linger(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-n.cfg.Clock.After(lingerTime):
	}
}

// lingerTime covers a round of the long polls and short retries by which busy clients find out. Kafka's brokers take
// about as long to stop.
const lingerTime = 500 * time.Millisecond

// handOverBackoffMax keeps a stop within its bound, whatever controlled.shutdown.retry.backoff.ms says.
const handOverBackoffMax = time.Second

func (n *Node) handOver(ctx context.Context) ([]store.TP, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if n.control.Active() {
		return n.control.ControlledShutdown(ctx, n.id, n.epoch.Load())
	}
	return n.peers.ControlledShutdown(ctx)
}

const (
	askTimeout = 10 * time.Second
	// askDelay is the pause after the controller was not reached, refusedDelay the one before a set that it
	// refused is given up, so that a follower that is not eligible is not proposed at its every fetch.
	askDelay     = 100 * time.Millisecond
	refusedDelay = time.Second
)

// proposer brings the in-sync sets that leaders here want to the controller, those that wait together in one
// request, until it has answered.
type proposer struct {
	n    *Node
	wake chan struct{}

	mu     sync.Mutex
	wanted map[store.TP]*replica.Replica

	shrinks, expands, failed atomic.Int64
}

// ISRStats counts the in-sync sets that leaders here have changed.
type ISRStats struct {
	Shrinks, Expands int64
	Failed           int64 // that were asked for and not granted, or got no answer
}

// ISRStats is since the start.
func (n *Node) ISRStats() ISRStats {
	p := n.proposer
	return ISRStats{p.shrinks.Load(), p.expands.Load(), p.failed.Load()}
}

func newProposer(n *Node) *proposer {
	return &proposer{n: n, wake: make(chan struct{}, 1), wanted: map[store.TP]*replica.Replica{}}
}

// want notes a replica with a proposal. It never blocks.
func (p *proposer) want(tp store.TP, r *replica.Replica) {
	p.mu.Lock()
	p.wanted[tp] = r
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *proposer) run() {
	for {
		select {
		case <-p.n.life.Done():
			return
		case <-p.wake:
		}
		if !p.ask() {
			select {
			case <-p.n.life.Done():
				return
			case <-p.n.cfg.Clock.After(askDelay):
			}
			p.nudge()
		}
	}
}

func (p *proposer) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// ask brings what waits to the controller; false: some of it has to be asked for again.
func (p *proposer) ask() bool {
	p.mu.Lock()
	wanted := p.wanted
	p.wanted = map[store.TP]*replica.Replica{}
	p.mu.Unlock()
	var changes []controller.ISRChange
	var of []*replica.Replica
	var had []int // how large the sets were; the controller's push may come before its answer
	for tp, r := range wanted {
		want, ok := r.Proposal()
		st, err := r.State(-1)
		if !ok || err != nil {
			continue
		}
		ch := controller.ISRChange{TP: tp, TopicID: st.TopicID, LeaderEpoch: want.LeaderEpoch, PartitionEpoch: want.PartitionEpoch}
		for _, m := range want.ISR {
			ch.ISR = append(ch.ISR, controller.ISRMember{Broker: m.Broker, Epoch: m.Epoch})
		}
		isr, _ := r.InSync()
		changes, of, had = append(changes, ch), append(of, r), append(had, len(isr))
	}
	if len(changes) == 0 {
		return true
	}
	answers, err := p.n.alterPartition(changes)
	if err != nil {
		p.failed.Add(int64(len(changes)))
		p.n.cfg.Log.Debug("the controller did not change in-sync sets; will ask again", "count", len(changes), "err", err)
		for i, r := range of {
			p.want(changes[i].TP, r)
		}
		return false
	}
	settled := true
	for i, a := range answers {
		settled = p.settle(&changes[i], of[i], &a) && settled
		switch n := len(a.ISR) - had[i]; {
		case a.Err != nil:
			p.failed.Add(1)
		case n < 0:
			p.shrinks.Add(1)
		case n > 0:
			p.expands.Add(1)
		}
	}
	return settled
}

func (n *Node) alterPartition(changes []controller.ISRChange) ([]controller.ISRAnswer, error) {
	ctx, cancel := context.WithTimeout(n.life, askTimeout)
	defer cancel()
	if n.peers == nil || n.control.Active() {
		return n.control.AlterPartition(ctx, n.id, n.epoch.Load(), changes)
	}
	return n.peers.AlterPartition(ctx, changes)
}

// settle does what an answer asks for; false: the set has to be asked for again.
func (p *proposer) settle(ch *controller.ISRChange, r *replica.Replica, a *controller.ISRAnswer) bool {
	n := p.n
	switch {
	case a.Err == nil:
		n.cfg.Log.Info("in-sync set", "topic", ch.TP.Topic, "partition", ch.TP.Partition, "isr", a.ISR, "epoch", a.LeaderEpoch)
		r.Altered(a.LeaderEpoch, a.PartitionEpoch, a.ISR)
		return true
	case errors.Is(a.Err, controller.ErrIneligible), errors.Is(a.Err, controller.ErrInvalidISR):
		epoch, version := ch.LeaderEpoch, ch.PartitionEpoch
		n.cfg.Clock.AfterFunc(refusedDelay, func() { r.Refused(epoch, version) })
		return true
	}
	// Whether an earlier request was carried out is not known: the larger set goes on counting until the
	// controller's word is here.
	p.want(ch.TP, r)
	return false
}
