package replica

import (
	"sync/atomic"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/replication/core"
)

// Append is a produce to the partition.
type Append struct {
	Batches []batch.Batch
	Acks    int16 // 0, 1 or -1
	// Unbroken: only while State.LedSince is LedSince, else ErrNotLeader. For who keeps state of a leadership.
	Unbroken bool
	LedSince int32
	// Done is called once: acks 0 and 1 when written, -1 when the high watermark has passed the last
	// record. Never under a lock.
	Done func(commitlog.Appended)
}

// Append checks leadership and queues in call order (see commitlog.Log.Enqueue); errors come by Done.
// The batches' bytes belong to the log until Done. It returns a cancel for the wait of acks=-1 (nil
// when nothing waits): cancelled, Done gets ErrTimeout unless it was called already. A cancel before
// the records are written takes effect once they are, since the log still has the bytes.
func (r *Replica) Append(a *Append) (cancel func()) {
	v := r.view.Load()
	switch {
	case v.stopped:
		return refuse(a, ErrUnknownPartition)
	case v.term == nil, a.Unbroken && a.LedSince != v.ledSince:
		return refuse(a, ErrNotLeader)
	case !v.term.enter():
		return refuse(a, ErrNextTerm)
	case a.Acks == -1 && v.underMin:
		v.term.leave()
		return refuse(a, ErrNotEnoughReplicas)
	}
	o := &op{r: r, term: v.term, all: a.Acks == -1, done: a.Done}
	o.toLog = commitlog.Append{Batches: a.Batches, Origin: commitlog.Client, LeaderEpoch: v.epoch, Done: o.written}
	r.log.Enqueue(&o.toLog)
	if !o.all || o.state.Load() == finished {
		return nil
	}
	return o.cancel
}

func refuse(a *Append, err error) func() {
	a.Done(commitlog.Appended{BaseOffset: -1, LastOffset: -1, LogAppendTimeMs: -1, LogStartOffset: -1, Err: err})
	return nil
}

// op is one append on its way: to the log, and then, for acks=all, to the high watermark.
type op struct {
	r     *Replica
	term  *term
	all   bool
	toLog commitlog.Append
	done  func(commitlog.Appended)

	state     atomic.Int32 // changed under r.mu
	cancelled bool         // under r.mu
	result    commitlog.Appended
}

// States of an op.
const (
	queued   int32 = iota // with the log
	waiting               // in r.waits
	finished              // done was called, or is about to be
)

// written is the log's answer.
func (o *op) written(a commitlog.Appended) {
	o.result = a
	if a.Err != nil {
		o.state.Store(finished)
		o.term.leave()
		o.done(a)
		return
	}
	r := o.r
	r.mu.Lock()
	end := r.core.Ends()
	// Answers may overtake each other: the end only rises here.
	w := r.core.Appended(core.Ends{
		Start:   max(end.Start, a.LogStartOffset),
		Written: max(end.Written, a.LastOffset+1),
		Durable: max(end.Durable, r.log.Ends().Durable),
	})
	ready := r.settle(w)
	own := r.admit(o)
	r.mu.Unlock()
	o.term.leave()
	finish(ready)
	if own {
		o.done(o.result)
	}
	r.signal(false)
}

// admit says whether a written op is done at once, and lets it wait otherwise. Called under mu.
func (r *Replica) admit(o *op) bool {
	switch {
	case !o.all, plantedAck:
	case r.core.HighWatermark() > o.result.LastOffset:
		o.result.Err = r.enough()
	case o.cancelled:
		o.result.Err = ErrTimeout
	default:
		o.state.Store(waiting)
		r.waits.add(o)
		return false
	}
	o.state.Store(finished)
	return true
}

// settle publishes what an event brought, and takes from the waits what it finished. Called under mu.
func (r *Replica) settle(w core.Work) []*op {
	r.hw.Store(r.core.HighWatermark())
	var ready []*op
	if w.Moved {
		ready = r.waits.takeBelow(r.core.HighWatermark())
		err := error(nil)
		if len(ready) > 0 {
			err = r.enough()
		}
		for _, o := range ready {
			o.result.Err = err
			o.state.Store(finished)
		}
	}
	if w.Lost {
		ready = append(ready, r.giveUp()...)
	}
	return ready
}

// giveUp takes all waits, which end with ErrNotLeader. Called under mu.
func (r *Replica) giveUp() []*op {
	ops := r.waits.takeAll()
	for _, o := range ops {
		o.result.Err = ErrNotLeader
		o.state.Store(finished)
	}
	return ops
}

// GiveUp ends the waits of acks=all with ErrNotLeader: the leadership was handed over, and the word of it may come too
// late for a broker that stops.
func (r *Replica) GiveUp() {
	r.mu.Lock()
	ops := r.giveUp()
	r.mu.Unlock()
	finish(ops)
}

// enough: committed records are acknowledged only while the in-sync set is large enough.
func (r *Replica) enough() error {
	if r.core.Enough() != nil {
		return ErrNotEnoughReplicasAfterAppend
	}
	return nil
}

func finish(ops []*op) {
	for _, o := range ops {
		o.done(o.result)
	}
}

func (o *op) cancel() {
	r := o.r
	r.mu.Lock()
	was := o.state.Load()
	switch was {
	case queued:
		o.cancelled = true
	case waiting:
		r.waits.remove(o)
		o.result.Err = ErrTimeout
		o.state.Store(finished)
	}
	r.mu.Unlock()
	if was == waiting {
		o.done(o.result)
	}
}
