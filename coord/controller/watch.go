package controller

import (
	"sync/atomic"

	"platter/coord/zkclient"
)

// watches arms one-shot watches under one session, each flag at most once at a time, so that re-reading does
// not pile them up.
type watches struct {
	c     *Controller
	zk    Coordinator
	armed atomic.Uint32 // flags that have a watch
}

// arm gives the watch to set for a flag, nil when one is set already.
func (w *watches) arm(flag uint32) func(zkclient.Event) {
	for {
		old := w.armed.Load()
		if old&flag != 0 {
			return nil
		}
		if w.armed.CompareAndSwap(old, old|flag) {
			break
		}
	}
	return func(zkclient.Event) {
		w.disarm(flag)
		w.c.raise(flag)
	}
}

func (w *watches) disarm(flag uint32) {
	w.armed.And(^flag)
}

// get reads a node and watches it; a missing one is watched too.
func (w *watches) get(flag uint32, path string) ([]byte, zkclient.Stat, error) {
	watch := w.arm(flag)
	// exists, unlike getData, leaves a watch on a missing node; it is sent first, so no change falls between.
	if _, err := w.zk.Exists(w.c.life, path, watch); err != nil {
		if watch != nil && !isNoNode(err) {
			w.disarm(flag)
		}
		return nil, zkclient.Stat{}, err
	}
	return w.zk.Get(w.c.life, path, nil)
}

// children lists a node and watches it.
func (w *watches) children(flag uint32, path string) ([]string, error) {
	watch := w.arm(flag)
	names, _, err := w.zk.Children(w.c.life, path, watch)
	if err != nil && watch != nil {
		w.disarm(flag)
	}
	return names, err
}
