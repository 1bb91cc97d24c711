package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/engine/store"
	"platter/replication/host"
	"platter/replication/replica"
)

// local is the way from the controller to this very broker, and what a broker does when a controller
// speaks to it.
type local struct {
	n *Node

	mu    sync.Mutex // one push at a time
	epoch int32      // the newest controller epoch that spoke
}

// fence refuses who is not the newest controller, or speaks to an earlier life of this broker. A broker epoch that is
// newer than the own one is of a registration whose answer has not arrived here yet (KafkaApis.isBrokerEpochStale); only
// before the first one nothing is known, and all is refused. Called under mu.
func (l *local) fence(to cluster.Broker, h controller.Header) error {
	if to.ID != l.n.id {
		return fmt.Errorf("no way to broker %d", to.ID)
	}
	if h.ControllerEpoch < l.epoch {
		return fmt.Errorf("%w: %d, now %d", controller.ErrStaleController, h.ControllerEpoch, l.epoch)
	}
	if e := l.n.epoch.Load(); e == 0 || h.BrokerEpoch < e {
		return fmt.Errorf("%w: %d, now %d", controller.ErrStaleBroker, h.BrokerEpoch, e)
	}
	l.epoch = h.ControllerEpoch
	return nil
}

// prepare reads the settings of topics before a word is carried out: a coordinator that does not answer must not hold up
// other words. What is known of fresh topics is of earlier ones of the same name.
func (l *local) prepare(ctx context.Context, to cluster.Broker, h controller.Header, topics, fresh []string) error {
	l.mu.Lock()
	err := l.fence(to, h)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.n.configs.forget(fresh)
	return l.n.ensureConfigs(ctx, topics)
}

// LeaderAndISR makes this broker leader or follower of what is named.
func (l *local) LeaderAndISR(ctx context.Context, to cluster.Broker, r controller.LeaderAndISR) ([]error, error) {
	n := l.n
	var topics, fresh []string
	for i := range r.Partitions {
		p := &r.Partitions[i]
		if len(topics) > 0 && topics[len(topics)-1] == p.TP.Topic {
			continue
		}
		topics = append(topics, p.TP.Topic)
		if p.New { // what is known by that name is of an earlier topic
			fresh = append(fresh, p.TP.Topic)
		}
	}
	if err := l.prepare(ctx, to, r.Header, topics, fresh); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fence(to, r.Header); err != nil {
		return nil, err
	}
	if err := n.ensureConfigs(ctx, topics); err != nil {
		return nil, err
	}
	states := make([]host.PartitionState, len(r.Partitions))
	for i := range r.Partitions {
		states[i] = n.partitionState(&r.Partitions[i])
	}
	if r.Full {
		l.stopStrays(states)
	}
	absent := l.absent(states)
	errs := n.Host().Apply(states)
	l.replaceStale(states, errs)
	l.reportEmpty(states, errs, absent)
	for i := range errs {
		if errs[i] == nil && n.store.Get(states[i].TP) == nil { // it was served, until its directory failed
			errs[i] = fmt.Errorf("%s: %w", states[i].TP, store.ErrOffline)
		}
	}
	if r.Full {
		topics = nil
	}
	n.rolesChanged(topics)
	return errs, nil
}

func (n *Node) partitionState(p *controller.PartitionState) host.PartitionState {
	overrides := n.configs.topic(p.TP.Topic)
	return host.PartitionState{
		TP:              p.TP,
		TopicID:         p.TopicID,
		ControllerEpoch: p.State.ControllerEpoch,
		Leader:          p.State.Leader,
		LeaderEpoch:     p.State.LeaderEpoch,
		ISR:             p.State.ISR,
		Replicas:        p.Replicas,
		PartitionEpoch:  p.PartitionEpoch,
		New:             p.New,
		MinISR:          n.cfg.MinISR(overrides),
		Config:          n.cfg.LogConfig(overrides),
	}
}

// absent are the partitions that the cluster has known for a while and of which there is no log here, or one of
// an earlier topic of the same name.
func (l *local) absent(states []host.PartitionState) (at []int) {
	for i := range states {
		s := &states[i]
		if s.New {
			continue
		}
		if id := l.n.store.TopicID(s.TP); l.n.store.Get(s.TP) == nil || id != (store.UUID{}) && id != s.TopicID {
			at = append(at, i)
		}
	}
	return at
}

// reportEmpty says it aloud when partitions that were absent are served now.
func (l *local) reportEmpty(states []host.PartitionState, errs []error, absent []int) {
	const shown = 10
	var names []string
	count := 0
	for _, i := range absent {
		if errs[i] != nil {
			continue
		}
		if count++; count <= shown {
			names = append(names, fmt.Sprintf("%s-%d", states[i].TP.Topic, states[i].TP.Partition))
		}
	}
	if count > 0 {
		l.n.log("partitions start empty, since no log of theirs is here: if they had records, those are lost", "count", count, "partitions", names)
	}
}

// replaceStale: a replica of an earlier topic of the same name makes way for the new one.
func (l *local) replaceStale(states []host.PartitionState, errs []error) {
	for i, err := range errs {
		if errors.Is(err, host.ErrStaleTopic) {
			l.n.Host().Stop([]store.TP{states[i].TP}, false)
			errs[i] = l.n.Host().Apply(states[i : i+1])[0]
		}
	}
}

// stopStrays stops replicas that the controller does not count to this broker any more. Their logs stay:
// it takes a deletion to delete.
func (l *local) stopStrays(states []host.PartitionState) {
	named := make(map[store.TP]bool, len(states))
	for i := range states {
		named[states[i].TP] = true
	}
	var strays []store.TP
	l.n.Host().All(func(tp store.TP, _ *replica.Replica) {
		if !named[tp] {
			strays = append(strays, tp)
		}
	})
	l.n.Host().Stop(strays, false)
	for _, tp := range l.n.store.All() {
		if !named[tp] {
			l.n.log("a log belongs to no partition of this broker; it is kept, and not served", "topic", tp.Topic, "partition", tp.Partition)
		}
	}
}

// StopReplica ends replicas.
func (l *local) StopReplica(_ context.Context, to cluster.Broker, r controller.StopReplica) ([]error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fence(to, r.Header); err != nil {
		return nil, err
	}
	errs := make([]error, len(r.Partitions))
	for _, remove := range []bool{false, true} {
		var tps []store.TP
		var at []int
		for i, p := range r.Partitions {
			if p.Delete == remove {
				tps, at = append(tps, p.TP), append(at, i)
			}
		}
		for i, err := range l.n.Host().Stop(tps, remove) {
			errs[at[i]] = err
		}
	}
	l.n.rolesChanged(topicsOf(r.Partitions))
	return errs, nil
}

// UpdateMetadata makes the next image.
func (l *local) UpdateMetadata(ctx context.Context, to cluster.Broker, r controller.UpdateMetadata) error {
	n := l.n
	var topics, deleted []string
	for _, t := range r.Update.Topics {
		if t.Deleted {
			deleted = append(deleted, t.Name)
		} else {
			topics = append(topics, t.Name)
		}
	}
	if err := l.prepare(ctx, to, r.Header, topics, deleted); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fence(to, r.Header); err != nil {
		return err
	}
	if r.Update.Full {
		n.configs.keep(topics)
	}
	if err := n.ensureConfigs(ctx, topics); err != nil {
		return err
	}
	before := n.Image()
	n.changeImage(func(i *cluster.Image) *cluster.Image {
		return i.Apply(r.Update, n.configs.topic).WithBrokerConfigs(n.configs.broker())
	})
	n.imageChanged(before, n.Image(), &r.Update)
	return nil
}
