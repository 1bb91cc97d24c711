package controller

import (
	"errors"
	"fmt"

	"platter/coord/cluster"
	"platter/coord/zkclient"
)

// errDeposed: a write was refused because the controller epoch is not ours any more.
var errDeposed = errors.New("deposed")

// elect finds out who is the controller and tries to become it when nobody is. It returns the term,
// which is t when it goes on, or nil.
func (c *Controller) elect(t *term, w *watches) (*term, error) {
	for {
		p, stat, err := w.get(controllerNews, cluster.ControllerPath)
		switch {
		case errors.Is(err, zkclient.ErrNoNode) && c.over.Load():
			c.hush(nil)
			return nil, nil // for the others
		case errors.Is(err, zkclient.ErrNoNode):
			if t, err = c.race(w); err == nil || !lostRace(err) {
				return t, err
			}
			continue
		case err != nil:
			return t, err
		}
		id, foreign, err := cluster.DecodeController(p)
		if err != nil {
			return nil, err
		}
		if foreign {
			return nil, &cluster.ForeignError{Path: cluster.ControllerPath, ID: id}
		}
		if session, _ := w.zk.Session(); stat.EphemeralOwner != session {
			c.hush(nil)
			return nil, nil // somebody else; the watch tells when that ends
		}
		if t != nil && !t.deposed {
			return t, nil
		}
		return c.resume(w)
	}
}

func lostRace(err error) bool {
	return errors.Is(err, zkclient.ErrNodeExists) || errors.Is(err, zkclient.ErrBadVersion)
}

// race tries to become the controller; lostRace tells that somebody was faster.
func (c *Controller) race(w *watches) (*term, error) {
	p, stat, err := w.zk.Get(c.life, cluster.ControllerEpochPath, nil)
	if errors.Is(err, zkclient.ErrNoNode) {
		if _, err = w.zk.Create(c.life, cluster.ControllerEpochPath, cluster.EncodeEpoch(0), zkclient.Persistent); err != nil {
			return nil, err
		}
		p = cluster.EncodeEpoch(0)
	} else if err != nil {
		return nil, err
	}
	epoch, err := cluster.DecodeEpoch(p)
	if err != nil {
		return nil, err
	}
	epoch++
	results, err := w.zk.Multi(c.life,
		zkclient.CreateOp(cluster.ControllerPath, cluster.EncodeController(c.cfg.BrokerID, c.cfg.Clock.NowMs()), zkclient.Ephemeral),
		zkclient.SetOp(cluster.ControllerEpochPath, cluster.EncodeEpoch(epoch), stat.Version))
	if err != nil {
		return nil, fmt.Errorf("controller election: %w", err)
	}
	c.cfg.Log.Info("this broker is the controller", "epoch", epoch)
	return c.newTerm(w, epoch, results[1].Stat.Version), nil
}

// resume finds its own /controller there: an election whose answer was lost. Nobody but the owner of
// /controller raises the epoch, so what stands there is ours.
func (c *Controller) resume(w *watches) (*term, error) {
	p, stat, err := w.zk.Get(c.life, cluster.ControllerEpochPath, nil)
	if err != nil {
		return nil, err
	}
	epoch, err := cluster.DecodeEpoch(p)
	if err != nil {
		return nil, err
	}
	return c.newTerm(w, epoch, stat.Version), nil
}

func (c *Controller) newTerm(w *watches, epoch, fence int32) *term {
	c.hush(nil) // what was sent in another term must not overtake
	return &term{c: c, ctx: c.life, zk: w.zk, watches: w, core: newCore(), epoch: epoch, fence: fence, askDelay: askDelayMin}
}
