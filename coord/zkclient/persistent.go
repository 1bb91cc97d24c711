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
// Reconnected it is armed again, but no server tells what happened meanwhile: Missed is told, re-read then. Events
// beyond what may wait for a slow callback are lost, and one Missed is told in their place.
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
	err = c.do(ctx, request{op: zk.OpAddWatch, record: q.Append, watch: full, reply: ifOK(func(*zk.Decoder) { c.stay(full, w) })})
	if err != nil {
		if ctx.Err() != nil { // the answer may be under way
			c.mu.Lock()
			defer c.mu.Unlock()
			c.unwatch(full, w, 0)
		}
		return nil, wrap("addWatch", path, err)
	}
	return func(ctx context.Context) error { return wrap("removeWatches", path, c.removeWatch(ctx, full, w)) }, nil
}

// stayingWatcher is a persistent watch's callback.
type stayingWatcher struct {
	watcher
	recursive bool
	// Under the client's mu.
	missed  bool // a Missed is under way
	removed bool
}

func (c *Client) stay(full string, w *stayingWatcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go w.call(Event{Type: SessionLost, Path: w.path})
		return
	}
	if w.removed { // nobody waited for the answer
		c.unwatch(full, w, 1)
		return
	}
	c.watches.staying[full] = append(c.watches.staying[full], w)
}

// removeWatch takes a persistent watch away.
func (c *Client) removeWatch(ctx context.Context, full string, w *stayingWatcher) error {
	c.mu.Lock()
	done := c.unwatch(full, w, 0)
	c.mu.Unlock()
	select {
	case err := <-done:
		if errors.Is(err, ErrNoWatcher) || errors.Is(err, ErrConnectionLoss) { // it goes with the connection
			return nil
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unwatch takes a persistent watch away here; and, once nobody waits for anything at the path, but for so many who
// have asked, at the server, which removes all watches of the connection there. Both in one with mu held: a request
// that sets a watch there goes out before, and is seen, or after. The outcome comes on the channel.
func (c *Client) unwatch(full string, w *stayingWatcher, but int) <-chan error {
	w.removed = true
	left := slices.DeleteFunc(c.watches.staying[full], func(x *stayingWatcher) bool { return x == w })
	if c.watches.staying[full] = left; len(left) == 0 {
		delete(c.watches.staying, full)
	}
	done := make(chan error, 1)
	switch {
	case c.err != nil:
		done <- c.err
	case c.link == nil || c.watches.used(full, but): // without a connection there is nothing to remove
		done <- nil
	default:
		q := zk.WatchesRequest{Path: full, Type: zk.WatcherAny}
		if err := c.enqueue(c.link, request{op: zk.OpRemoveWatches, record: q.Append}, done); err != nil {
			done <- err
		}
	}
	return done
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
	c.tellMissed(w)
}

// tellMissed tells a persistent watch once that events may have been lost; mu is held.
func (c *Client) tellMissed(w *stayingWatcher) {
	if w.missed {
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
