package zkclient

import (
	"context"
	"errors"
	"slices"
	"strings"

	"platter/coord/zk"
)

// waitingMax bounds the events of persistent watches that wait for a slow callback. One-shot watches need
// no bound: there is one event for each.
const waitingMax = 10_000

// ErrUnsupported: the server has no such operation.
var ErrUnsupported = errors.New("the server does not know this operation")

// AddWatch sets a watch that stays: on the node's data and children, or if recursive on the node and all below
// it (then without NodeChildrenChanged). It needs a server of 3.6 or newer, else: ErrUnsupported. After
// Reconnected it is armed again, but nobody tells what happened meanwhile: re-read. Events beyond what may
// wait for a slow callback are lost, and one Missed is told in their place.
//
// A server keeps one kind of watch for each path and connection (ZOOKEEPER-4466): on a path with a
// persistent watch set no other kind by the same client.
//
// remove takes it away again.
func (c *Client) AddWatch(ctx context.Context, path string, recursive bool, call func(Event)) (remove func(context.Context) error, err error) {
	full := c.full(path)
	w := &stayingWatcher{watcher: watcher{path, call}, recursive: recursive}
	q := zk.AddWatchRequest{Path: full}
	if recursive {
		q.Mode = zk.WatchPersistentRecursive
	}
	err = c.do(ctx, request{op: zk.OpAddWatch, record: q.Append, reply: ifOK(func(*zk.Decoder) { c.stay(full, w) })})
	if err != nil {
		return nil, wrap("addWatch", path, err)
	}
	return func(ctx context.Context) error { return wrap("removeWatches", path, c.removeWatch(ctx, full, w)) }, nil
}

// stayingWatcher is a persistent watch's callback.
type stayingWatcher struct {
	watcher
	recursive bool
	missed    bool // a Missed is under way; under the client's mu
}

func (c *Client) stay(full string, w *stayingWatcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go w.call(Event{Type: SessionLost, Path: w.path})
		return
	}
	c.watches.staying[full] = append(c.watches.staying[full], w)
}

// removeWatch tells the server once nobody here waits for anything at the path: it removes all watches
// of the connection there.
func (c *Client) removeWatch(ctx context.Context, full string, w *stayingWatcher) error {
	c.mu.Lock()
	left := slices.DeleteFunc(c.watches.staying[full], func(x *stayingWatcher) bool { return x == w })
	if c.watches.staying[full] = left; len(left) == 0 {
		delete(c.watches.staying, full)
	}
	used := len(left) > 0
	for k := range c.watches.once {
		used = used || len(c.watches.once[k][full]) > 0
	}
	c.mu.Unlock()
	if used {
		return nil
	}
	q := zk.WatchesRequest{Path: full, Type: zk.WatcherAny}
	err := c.do(ctx, request{op: zk.OpRemoveWatches, record: q.Append})
	if errors.Is(err, ErrNoWatcher) {
		return nil
	}
	return err
}

// tellStaying hands an event to the persistent watches that it is for; mu is held.
func (c *Client) tellStaying(typ EventType, full string) {
	if len(c.watches.staying) == 0 {
		return
	}
	for at := full; ; {
		for _, w := range c.watches.staying[at] {
			if w.recursive && typ == NodeChildrenChanged || !w.recursive && at != full {
				continue
			}
			c.tellOne(w, Event{Type: typ, Path: c.local(full)})
		}
		if at == "/" {
			return
		}
		if at = at[:strings.LastIndexByte(at, '/')]; at == "" {
			at = "/"
		}
	}
}

func (c *Client) tellOne(w *stayingWatcher, e Event) {
	if w.missed {
		return
	}
	if c.notify.addUpTo(waitingMax, func() { w.call(e) }) {
		return
	}
	w.missed = true
	c.notify.add(func() {
		c.mu.Lock()
		w.missed = false
		c.mu.Unlock()
		w.call(Event{Type: Missed, Path: w.path})
	})
}
