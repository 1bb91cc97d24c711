package replica

import (
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

// watchers are those who wait for one replica.
type watchers struct {
	count atomic.Int64 // so that a signal with nobody there costs one load
	mu    sync.Mutex
	set   map[*Waiter]struct{}
}

// Watch adds w; Unwatch removes it.
func (r *Replica) Watch(w *Waiter)   { r.watchers.add(w) }
func (r *Replica) Unwatch(w *Waiter) { r.watchers.remove(w) }

func (ws *watchers) add(w *Waiter) {
	ws.mu.Lock()
	if ws.set == nil {
		ws.set = make(map[*Waiter]struct{})
	}
	ws.set[w] = struct{}{}
	ws.count.Store(int64(len(ws.set)))
	ws.mu.Unlock()
}

func (ws *watchers) remove(w *Waiter) {
	ws.mu.Lock()
	delete(ws.set, w)
	ws.count.Store(int64(len(ws.set)))
	ws.mu.Unlock()
}

func (ws *watchers) signal() {
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
	ws.mu.Unlock()
}
