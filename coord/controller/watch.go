package controller

import (
	"sync/atomic"

	"platter/coord/zkclient"
)

// armedFlags remembers which flags have a watch, so that re-reading does not pile them up.
type armedFlags struct{ bits atomic.Uint32 }

// arm gives the watch to set for a flag, nil when one is set already.
func (w *watches) arm(flag uint32) func(zkclient.Event) {
	for {
		old := w.armed.bits.Load()
		if old&flag != 0 {
			return nil
		}
		if w.armed.bits.CompareAndSwap(old, old|flag) {
			break
		}
	}
	return func(zkclient.Event) {
		w.disarm(flag)
		w.c.raise(flag)
	}
}

func (w *watches) disarm(flag uint32) {
	w.armed.bits.And(^flag)
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
