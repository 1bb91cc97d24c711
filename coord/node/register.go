package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/engine/store"
)

// settleIdentity finds out the broker's id: as configured, as in meta.properties, or generated.
func (n *Node) settleIdentity(ctx context.Context, zk *session, s *store.Store) error {
	if have := s.ClusterID(); have != "" && have != n.clusterID {
		return fmt.Errorf("%w: the data directories belong to cluster %s, the coordinator to cluster %s", ErrIdentity, have, n.clusterID)
	}
	id, have := n.cfg.BrokerID, s.BrokerID()
	switch {
	case id >= 0 && have >= 0 && id != have:
		return fmt.Errorf("%w: broker.id is %d, meta.properties says %d", ErrIdentity, id, have)
	case id >= 0:
	case have >= 0:
		id = have
	case !n.cfg.GenerateID:
		return fmt.Errorf("%w: broker.id is not set, and broker.id.generation.enable is false", ErrIdentity)
	default:
		former, err := formerID(ctx, zk, s)
		if err != nil {
			return err
		}
		if former >= 0 {
			n.log("meta.properties is lost; the cluster knows these logs, and so this broker's id", "broker", former)
			id = former
			break
		}
		stat, err := zk.Set(ctx, cluster.BrokerSeqIDPath, nil, -1)
		if err != nil {
			return fmt.Errorf("generate a broker id: %w", err)
		}
		id = n.cfg.ReservedIDMax + stat.Version
	}
	n.id = id
	return nil
}

// formerID is the one broker to which the cluster counts all logs in the store that it knows, -1 when it knows
// none of them: who lost meta.properties must not come back as another, to whom they do not belong.
func formerID(ctx context.Context, zk *session, s *store.Store) (int32, error) {
	var common []int32
	known := map[string]cluster.Assignment{}
	found := false
	for _, tp := range s.All() {
		a, seen := known[tp.Topic]
		if !seen {
			data, _, err := zk.Get(ctx, cluster.TopicPath(tp.Topic), nil)
			if err != nil && !errors.Is(err, zkclient.ErrNoNode) {
				return -1, err
			}
			if err == nil {
				a, _ = cluster.DecodeAssignment(data) // one that makes no sense names nobody
			}
			known[tp.Topic] = a
		}
		if tp.Partition < 0 || int(tp.Partition) >= len(a.Replicas) || a.ID != (store.UUID{}) && s.TopicID(tp) != (store.UUID{}) && a.ID != s.TopicID(tp) {
			continue
		}
		replicas := a.Replicas[tp.Partition]
		if !found {
			common, found = slices.Clone(replicas), true
			continue
		}
		common = slices.DeleteFunc(common, func(id int32) bool { return !slices.Contains(replicas, id) })
	}
	switch {
	case !found:
		return -1, nil
	case len(common) == 1:
		return common[0], nil
	}
	return -1, fmt.Errorf("%w: meta.properties is lost, and the logs may be those of brokers %v: set broker.id", ErrIdentity, common)
}

// ghostTime is how long a dead broker's session can live: its timeout, once more where the coordinator was held up and
// gave everybody the full time again, a tick, which is at most half of that, and some time for the server to act.
func ghostTime(zk *session) time.Duration { return zk.Timeout()*5/2 + 500*time.Millisecond }

// register creates the broker's znode. While another session holds it, it waits: at start (wait set)
// for as long as a dead session can live, else for as long as it takes.
func (n *Node) register(ctx context.Context, zk *session, start bool) error {
	if start {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, ghostTime(zk))
		defer cancel()
	}
	warned := false
	for {
		epoch, owner, err := n.tryRegister(ctx, zk)
		if err != nil {
			return err
		}
		if owner == 0 {
			n.epoch.Store(epoch)
			n.cfg.Log.Info("broker is registered", "broker", n.id, "epoch", epoch)
			return nil
		}
		if !warned {
			n.log("another session holds this broker's registration; waiting for its end", "broker", n.id, "session", fmt.Sprintf("0x%x", uint64(owner)))
			warned = true
		}
		if err := awaitDeletion(ctx, zk, cluster.BrokerPath(n.id)); err != nil {
			if start && ctx.Err() != nil {
				return fmt.Errorf("%w: under this broker's id %d, with a session that is alive (0x%x, waited %v): two brokers with one broker.id?",
					ErrRegistered, n.id, uint64(owner), ghostTime(zk))
			}
			return err
		}
	}
}

// tryRegister gives the broker epoch, or the session that holds the registration.
func (n *Node) tryRegister(ctx context.Context, zk *session) (epoch, owner int64, err error) {
	path := cluster.BrokerPath(n.id)
	value := cluster.EncodeBroker(n.self, n.cfg.Clock.NowMs())
	for {
		results, err := zk.Multi(ctx, zkclient.CreateOp(path, nil, zkclient.Ephemeral), zkclient.SetOp(path, value, 0))
		switch {
		case err == nil:
			return results[1].Stat.Czxid, 0, nil
		case errors.Is(err, zkclient.ErrConnectionLoss):
			continue // it may have been done: then the node is ours
		case !errors.Is(err, zkclient.ErrNodeExists):
			return 0, 0, fmt.Errorf("register broker %d: %w", n.id, err)
		}
		stat, err := zk.Exists(ctx, path, nil)
		switch mine, _ := zk.Session(); {
		case errors.Is(err, zkclient.ErrNoNode), errors.Is(err, zkclient.ErrConnectionLoss):
			continue
		case err != nil:
			return 0, 0, err
		case stat.EphemeralOwner == mine:
			return stat.Czxid, 0, nil
		}
		return 0, stat.EphemeralOwner, nil
	}
}

// awaitDeletion waits until the node is gone, or may be.
func awaitDeletion(ctx context.Context, zk *session, path string) error {
	fired := make(chan struct{}, 1)
	_, err := zk.Exists(ctx, path, func(zkclient.Event) { fired <- struct{}{} })
	if errors.Is(err, zkclient.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
