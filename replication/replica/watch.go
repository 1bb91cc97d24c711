package replica

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Waiter is signalled when a replica that it watches moves (high watermark, log end, leadership, start).
// C has room for one signal. One Waiter may watch many replicas.
//
// To miss nothing: Watch, then look at the state, then wait for C.
type Waiter struct{ C chan struct{} }

// NewWaiter makes a Waiter.
func NewWaiter() *Waiter { return &Waiter{C: make(chan struct{}, 1)} }

// Listener is told of a replica's moves until it has heard enough: for who keeps a list of what has moved, however many
// replicas there are. To miss nothing: Listen, then look at the state.
type Listener interface {
	// Moved must neither block nor call the replica. watermark says that nothing moved but the high watermark; more,
	// that the listener wants to be told of the next move too.
	Moved(watermark bool) (more bool)
	// Follower is whose fetches the listener stands for, nil of a consumer's. As long as it listens, each of them says
	// that the follower has all that is here.
	Follower() *Follower
}

// Follower is a follower that fetches many partitions and does not name those in which nothing moves.
type Follower struct {
	Broker  int32
	Epoch   int64        // its registration
	HeardMs atomic.Int64 // when it last fetched
}

// watchers are those who wait for one replica.
type watchers struct {
	count atomic.Int64 // so that a signal with nobody there costs one load
	mu    sync.Mutex
	set   map[*Waiter]struct{}
	once  []Listener
}

// Watch adds w; Unwatch removes it.
func (r *Replica) Watch(w *Waiter)   { r.watchers.add(w) }
func (r *Replica) Unwatch(w *Waiter) { r.watchers.remove(w) }

// Listen adds l until it wants no more; Unlisten removes it.
func (r *Replica) Listen(l Listener) {
	ws := &r.watchers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !slices.Contains(ws.once, l) {
		ws.once = append(ws.once, l)
		ws.recount()
	}
}

// Unlisten removes l.
func (r *Replica) Unlisten(l Listener) {
	ws := &r.watchers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if i := slices.Index(ws.once, l); i >= 0 {
		ws.once = slices.Delete(ws.once, i, i+1)
		ws.recount()
	}
}

func (ws *watchers) recount() { ws.count.Store(int64(len(ws.set) + len(ws.once))) }

func (ws *watchers) add(w *Waiter) {
	ws.mu.Lock()
	if ws.set == nil {
		ws.set = make(map[*Waiter]struct{})
	}
	ws.set[w] = struct{}{}
	ws.recount()
	ws.mu.Unlock()
}

func (ws *watchers) remove(w *Waiter) {
	ws.mu.Lock()
	delete(ws.set, w)
	ws.recount()
	ws.mu.Unlock()
}

// signal tells who waits that the replica has moved. No lock of the replica is held.
func (r *Replica) signal(watermark bool) {
	ws := &r.watchers
	if ws.count.Load() == 0 {
		return
	}
	ws.mu.Lock()
	for w := range ws.set {
		select {
		case w.C <- struct{}{}:
		default:
		}
	}
	if !watermark { // who goes on listening goes on being heard of
		r.heard(ws.once)
	}
	kept := ws.once[:0]
	for _, l := range ws.once {
		if l.Moved(watermark) {
			kept = append(kept, l)
		}
	}
	clear(ws.once[len(kept):])
	ws.once = kept
	ws.recount()
	ws.mu.Unlock()
}

// heard notes until when followers that listened had everything.
func (r *Replica) heard(ls []Listener) {
	if !slices.ContainsFunc(ls, func(l Listener) bool { return l.Follower() != nil }) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range ls {
		if f := l.Follower(); f != nil {
			r.core.Heard(f.Broker, f.Epoch, f.HeardMs.Load())
		}
	}
}

// listening are those who would be told of the next move.
func (r *Replica) listening() []Listener {
	ws := &r.watchers
	if ws.count.Load() == 0 {
		return nil
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Clone(ws.once)
}
