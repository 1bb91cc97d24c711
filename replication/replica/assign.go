package replica

import (
	"platter/engine/commitlog"
	"platter/replication/core"
)

// Assign is the controller's word: this broker leads, follows, or there is no leader. It returns once
// the replica serves in its new role. ErrStaleEpoch: the word is older than what is held, nothing
// changed. Another error is the log's: then the replica serves nothing until the next Assign.
func (r *Replica) Assign(a core.Assignment, nowMs int64) error {
	ready, err := r.assign(a, nowMs)
	finish(ready)
	r.signal(false)
	return err
}

func (r *Replica) assign(a core.Assignment, nowMs int64) ([]*op, error) {
	r.assigning.Lock()
	defer r.assigning.Unlock()
	now := r.view.Load()
	if now.stopped {
		return nil, ErrUnknownPartition
	}
	r.mu.Lock()
	stale := a.LeaderEpoch < r.core.LeaderEpoch() ||
		a.LeaderEpoch == r.core.LeaderEpoch() && a.PartitionEpoch < r.core.PartitionEpoch()
	r.mu.Unlock()
	if stale {
		return nil, ErrStaleEpoch
	}
	leads := a.Leader == r.self
	term := now.term
	if term != nil && (a.LeaderEpoch > now.epoch || !leads) {
		term.end()
		term = nil
	}
	var err error
	if leads && term == nil {
		if err = r.log.AssignEpoch(a.LeaderEpoch); err == nil {
			term = newTerm()
		}
	}

	r.mu.Lock()
	if term != now.term || term == nil {
		r.core.Appended(r.ends()) // nobody is appending
	}
	w, refused := r.core.Assign(a, nowMs)
	w.Lost = w.Lost || leads && term == nil
	ready := r.settle(w)
	since := a.LeaderEpoch
	switch {
	case term == nil:
		since = -1
	case now.term != nil && !w.Lost:
		since = now.ledSince
	}
	r.view.Store(&view{
		leader:   a.Leader,
		epoch:    a.LeaderEpoch,
		term:     term,
		ledSince: since,
		begin:    r.core.TermStart(),
		underMin: r.core.Enough() != nil,
	})
	r.mu.Unlock()
	if err == nil {
		err = refused
	}
	return ready, err
}

// Stop ends the replica: appends and reads get ErrUnknownPartition from now on, and who waits for the
// watermark gets ErrNotLeader. When it returns no append is on its way to the log.
func (r *Replica) Stop() {
	finish(r.stop())
	r.signal(false)
}

func (r *Replica) stop() []*op {
	r.assigning.Lock()
	defer r.assigning.Unlock()
	now := r.view.Load()
	if now.stopped {
		return nil
	}
	r.view.Store(&view{leader: core.NoLeader, epoch: now.epoch, ledSince: -1, stopped: true})
	if now.term != nil {
		now.term.end()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settle(core.Work{Lost: true})
}

// SetConfig gives the topic's new settings. It does not wait for a change of roles or a fetch that is under way, which a disk may
// hold up: then the settings count right after it.
func (r *Replica) SetConfig(c commitlog.Config, minISR int) {
	r.log.SetConfig(c)
	r.minISR.Store(int64(minISR))
	if r.assigning.TryLock() { // a view is made anew from the one before
		r.takeMinISR()
		return
	}
	go func() {
		r.assigning.Lock()
		r.takeMinISR()
	}()
}

// takeMinISR takes over what SetConfig was told last, and unlocks assigning.
func (r *Replica) takeMinISR() {
	minISR := int(r.minISR.Load())
	r.mu.Lock()
	ready := r.settle(r.core.SetConfig(minISR, core.Written))
	v := *r.view.Load()
	v.underMin = r.core.Enough() != nil
	r.view.Store(&v)
	r.mu.Unlock()
	r.assigning.Unlock()
	finish(ready)
	r.signal(false)
}

// Advance looks at the log's ends again: after a sync in the background, a trim, retention.
func (r *Replica) Advance() {
	r.mu.Lock()
	e, held := r.ends(), r.core.Ends()
	// An append that is written but not answered yet is for its own answer to tell.
	ready := r.settle(r.core.Appended(core.Ends{
		Start:   max(held.Start, e.Start),
		Written: held.Written,
		Durable: max(held.Durable, min(e.Durable, held.Written)),
	}))
	r.mu.Unlock()
	finish(ready)
	r.signal(false)
}
