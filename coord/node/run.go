package node

import (
	"context"
	"errors"
	"time"

	"platter/coord/cluster"
	"platter/coord/zkclient"
)

// Flags are what there is news of.
const (
	disconnected uint32 = 1 << iota
	reconnected
	expired
	configNews
	dirFailed
)

// retryDelay is how long the node waits after something failed that it must do.
const retryDelay = 500 * time.Millisecond

// raise notes news and wakes the node's goroutine. It never blocks.
func (n *Node) raise(f uint32) {
	n.flags.Or(f)
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run is the node's goroutine after Start: it keeps the session, the registration and the overrides up.
func (n *Node) run() {
	defer close(n.ended)
	for {
		select {
		case <-n.life.Done():
			return
		case <-n.wake:
		}
		flags := n.flags.Swap(0)
		if flags&disconnected != 0 && flags&(reconnected|expired) == 0 {
			n.log("the coordinator's connection is lost; data goes on, changes of the cluster wait")
		}
		if flags&expired != 0 {
			if !n.renew() {
				return
			}
			n.configs.stale.Store(true)
			flags |= configNews
		}
		if flags&reconnected != 0 {
			n.cfg.Log.Info("the coordinator's connection is back")
			n.control.Reread()
			n.configs.stale.Store(true)
			flags |= configNews
		}
		if flags&configNews != 0 {
			n.readConfigs()
		}
		if flags&dirFailed != 0 {
			n.reportDir()
		}
	}
}

// again raises a flag after a delay.
func (n *Node) again(flag uint32) {
	n.cfg.Clock.AfterFunc(retryDelay, func() { n.raise(flag) })
}

// renew makes a new session after one expired, registers and joins the election; false: the node ends.
func (n *Node) renew() bool {
	n.log("the coordinator session has expired; registering anew")
	n.control.Lost()
	for {
		err := n.renewOnce()
		if err == nil {
			return true
		}
		if n.life.Err() != nil {
			return false
		}
		n.log("registering anew failed; will try again", "err", err)
		select {
		case <-n.life.Done():
			return false
		case <-n.cfg.Clock.After(retryDelay):
		}
	}
}

func (n *Node) renewOnce() error {
	zk, err := n.connect(n.life)
	if err != nil {
		return err
	}
	if err := n.rejoin(zk); err != nil {
		zk.Close()
		return err
	}
	// Also when the driver could not finish now: it goes on by itself, or the session has expired again.
	if err := n.control.Session(zk.alive, zk); err != nil && n.life.Err() == nil {
		n.log("the controller election is not finished", "err", err)
	}
	return nil
}

func (n *Node) rejoin(zk *session) error {
	if err := refuseForeign(n.life, zk); err != nil {
		return err
	}
	id, err := cluster.EnsureLayout(n.life, zk)
	if err != nil {
		return err
	}
	if id != n.clusterID {
		// The coordinator lost its data, or is another one: to go on would mix two clusters.
		return errors.Join(ErrIdentity, errors.New("the coordinator is of cluster "+id+" now, this broker of "+n.clusterID))
	}
	n.keepSession(zk)
	if err := n.register(n.life, zk, false); err != nil {
		return err
	}
	return n.use(zk)
}

// reportDir tells the controller that a directory failed.
func (n *Node) reportDir() {
	ctx, cancel := context.WithTimeout(n.life, 10*time.Second)
	defer cancel()
	_, err := n.zk.Load().Create(ctx, cluster.LogDirEventSequencePath(), cluster.EncodeLogDirEvent(n.id), zkclient.PersistentSequential)
	if err != nil && n.life.Err() == nil {
		n.log("the controller could not be told of a failed directory; will try again", "err", err)
		n.again(dirFailed)
	}
}
