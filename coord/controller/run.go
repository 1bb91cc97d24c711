package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"platter/coord/cluster"
	"platter/coord/zkclient"
)

// Flags are what there is news of; raised by anybody, lowered by the driver, which then reads.
const (
	newSession uint32 = 1 << iota
	reread
	controllerNews
	brokersNews
	topicsNews
	deletesNews
	logDirNews
	answerNews
	balanceNews
	configNews
	askNews
	missedNews
)

// The driver waits this long after a failure that no event will end, doubling up to the maximum.
const (
	retryDelayMin = 250 * time.Millisecond
	retryDelayMax = 30 * time.Second
)

// raise notes news and wakes the driver. It never blocks.
func (c *Controller) raise(f uint32) {
	c.flags.Or(f)
	c.raised.CompareAndSwap(0, c.cfg.Clock.Now().UnixMicro())
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// term is one time of being the controller, the driver's state.
type term struct {
	c   *Controller
	ctx context.Context
	zk  Coordinator
	*watches
	core *core
	// epoch is the controller epoch, fence the version of /controller_epoch that all writes check.
	epoch int32
	fence int32
	// loaded: the core holds what was read; else everything has to be read first.
	loaded bool
	// deposed: a write was refused; what is ours has to be found out anew.
	deposed bool
	// topicsAtMs is when the list of topics was last read.
	topicsAtMs int64
	// elected and unclean are how many partitions got another leader since that was last told to the meter.
	elected, unclean int
	// asking: brokers will be asked again for what they could not serve; askDelay is the next pause before that.
	asking   bool
	askDelay time.Duration
}

// topicsEvery is how often the list of topics is read at most: every topic that we create ourselves makes
// news of it too, and it may be long.
const topicsEvery = 50 * time.Millisecond

// run is the driver.
func (c *Controller) run() {
	defer close(c.ended)
	var t *term
	var w *watches
	for {
		select {
		case <-c.life.Done():
			return
		case job := <-c.requests:
			began := c.cfg.Clock.Now()
			if t != nil && t.loaded {
				job(t)
			} else {
				job(nil)
			}
			c.cfg.Meter.Took(c.cfg.Clock.Now().Sub(began))
		case <-c.wake:
		}
		flags := c.flags.Swap(0)
		if flags&newSession != 0 {
			t, w = nil, nil
			c.hush(nil)
			c.active.Store(false)
			c.join(ErrNotController) // of a session that is gone
			var zk Coordinator
			if zk, c.joining = c.takeSession(); zk != nil {
				w = &watches{c: c, zk: zk}
				flags |= controllerNews
			}
		}
		if w == nil {
			continue
		}
		t = c.measured(t, w, flags)
	}
}

// measured is turn, with its times told to the meter where this broker is the controller.
func (c *Controller) measured(t *term, w *watches, flags uint32) *term {
	began, raised := c.cfg.Clock.Now(), c.raised.Swap(0)
	t = c.turn(t, w, flags)
	if t != nil {
		if raised > 0 {
			c.cfg.Meter.Waited(began.Sub(time.UnixMicro(raised)))
		}
		c.cfg.Meter.Took(c.cfg.Clock.Now().Sub(began))
	}
	return t
}

// turn handles news; it returns the term, or nil when this broker is not the controller.
func (c *Controller) turn(t *term, w *watches, flags uint32) *term {
	var err error
	if flags&(controllerNews|reread) != 0 {
		t, err = c.elect(t, w)
	}
	if err == nil && t != nil {
		err = t.news(flags)
	}
	c.active.Store(t != nil && t.loaded)
	switch {
	case err == nil:
		c.retryDelay = retryDelayMin
		c.join(nil)
	case c.life.Err() != nil:
	case errors.Is(err, zkclient.ErrSessionExpired), errors.Is(err, zkclient.ErrClosed):
		c.join(err) // a new session will come, from who waits for this one's election
	case errors.Is(err, errDeposed):
		t.depose()
		return nil
	default:
		c.cfg.Log.Error("controller: will read the cluster again", "err", err)
		if t != nil {
			t.loaded = false
		}
		c.cfg.Clock.AfterFunc(c.retryDelay, func() { c.raise(reread) })
		c.retryDelay = min(2*c.retryDelay, retryDelayMax)
		var foreign *cluster.ForeignError
		if errors.As(err, &foreign) {
			c.join(err)
		}
	}
	return t
}

// depose ends a term whose write was refused.
func (t *term) depose() {
	t.c.cfg.Log.Warn("this broker is not the controller any more", "epoch", t.epoch)
	t.c.hush(nil)
	t.deposed, t.loaded = true, false
	t.c.raise(controllerNews)
}

func (c *Controller) session() Coordinator {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zk
}

// takeSession gives the newest session, and who waits for its election.
func (c *Controller) takeSession() (Coordinator, chan error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	joiner := c.joiner
	c.joiner = nil
	return c.zk, joiner
}

// join answers a waiting Session.
func (c *Controller) join(err error) {
	if c.joining != nil {
		c.joining <- err
		c.joining = nil
	}
}

// news acts on what there is news of.
func (t *term) news(flags uint32) error {
	if !t.loaded || flags&reread != 0 {
		return t.load()
	}
	if flags&topicsNews != 0 {
		age := time.Duration(t.c.cfg.Clock.NowMs()-t.topicsAtMs) * time.Millisecond
		if age >= 0 && age < topicsEvery { // a clock that was set back makes it negative
			flags &^= topicsNews
			t.c.cfg.Clock.AfterFunc(topicsEvery-age, func() { t.c.raise(topicsNews) })
		}
	}
	if flags&(brokersNews|topicsNews) != 0 {
		if flags&brokersNews != 0 {
			if err := t.readBrokers(); err != nil {
				return err
			}
		}
		if flags&topicsNews != 0 {
			if err := t.readTopics(); err != nil {
				return err
			}
		}
		if err := t.settle(); err != nil {
			return err
		}
	}
	if flags&answerNews != 0 && t.readAnswers() {
		if err := t.settle(); err != nil {
			return err
		}
	}
	if flags&askNews != 0 {
		if err := t.ask(); err != nil {
			return err
		}
	}
	if flags&missedNews != 0 && t.retell() {
		if err := t.settle(); err != nil {
			return err
		}
	}
	if flags&configNews != 0 && t.core.allowUnclean(t.c.unclean) {
		if err := t.settle(); err != nil {
			return err
		}
	}
	if flags&balanceNews != 0 {
		t.rebalance()
	}
	if flags&logDirNews != 0 {
		if err := t.readLogDirEvents(); err != nil {
			return err
		}
	}
	if flags&(deletesNews|brokersNews) != 0 {
		return t.readDeletes()
	}
	return nil
}

// settleRoundsMax bounds settle: states that somebody else keeps changing are no reason to spin.
const settleRoundsMax = 10

// settle elects until nothing is left to elect, and tells the brokers.
func (t *term) settle() error {
	began := t.c.cfg.Clock.Now()
	defer t.countElected(began)
	for range settleRoundsMax {
		changes := t.core.elections()
		if err := t.writeStates(changes); err != nil {
			return err
		}
		if news := t.push(); !news && len(changes) == 0 {
			return nil
		}
	}
	return errors.New("elections do not come to rest")
}

// note counts a change that is about to be committed, if it gives a partition another leader.
func (t *term) note(ch *change) {
	p := t.core.partition(ch.tp)
	if p == nil || !p.exists || ch.state.Leader < 0 || ch.state.Leader == p.state.Leader {
		return
	}
	t.elected++
	if !slices.Contains(p.state.ISR, ch.state.Leader) {
		t.unclean++
	}
}

// countElected tells the meter of the elections since the last time.
func (t *term) countElected(began time.Time) {
	if t.elected > 0 {
		t.c.cfg.Meter.Elected(t.elected, t.unclean, t.c.cfg.Clock.Now().Sub(began))
	}
	t.elected, t.unclean = 0, 0
}
