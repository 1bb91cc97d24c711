package zkcli

import (
	"context"
	"encoding/json"
	"fmt"

	"platter/coord/zkclient"
)

// watcher is a watch that hands its event to a channel with room, or in a shell prints it; or none.
func (t *Tool) watcher(want bool, events chan zkclient.Event) func(zkclient.Event) {
	switch {
	case !want:
		return nil
	case t.o.Shell:
		return t.printLater
	}
	return func(e zkclient.Event) { events <- e }
}

// printLater prints an event in between. Whoever has closed the session knows that watches went with it.
func (t *Tool) printLater(e zkclient.Event) {
	if e.Type == zkclient.SessionLost || t.silent.Load() {
		return
	}
	_ = writeEvent(t.opened, e) // as when nobody reads any more
}

// await waits for the one event of a watch and prints it.
func (t *Tool) await(ctx context.Context, want bool, events <-chan zkclient.Event) error {
	if !want || t.o.Shell {
		return nil
	}
	select {
	case e := <-events:
		return t.printEvent(e)
	case <-ctx.Done():
		return nil // interrupted: that is how a watch ends
	}
}

func (t *Tool) printEvent(e zkclient.Event) error {
	if e.Type == zkclient.SessionLost {
		return zkclient.ErrSessionExpired
	}
	return writeEvent(t.o, e)
}

func writeEvent(o Options, e zkclient.Event) error {
	if o.JSON {
		return json.NewEncoder(o.Out).Encode(struct {
			Event string `json:"event"`
			Path  string `json:"path"`
		}{eventNames[e.Type], e.Path})
	}
	_, err := fmt.Fprintf(o.Out, "%s %s\n", eventNames[e.Type], e.Path)
	return err
}

// eventsMax is how many events may wait for a slow reader of the output; then Missed is printed.
const eventsMax = 1000

// Watch prints what happens at a node, and recursive below it, until ctx ends or count events have come (0: no
// limit): Missed where events may have been lost. A server that has no persistent watches is told of by the error.
func (t *Tool) Watch(ctx context.Context, p string, recursive bool, count int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // events that nobody waits for any more keep nothing from ending
	events := make(chan zkclient.Event, eventsMax)
	in, cancel := t.within(ctx)
	defer cancel()
	remove, err := t.zk.AddWatch(in, clean(p), recursive, func(e zkclient.Event) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	for n := 0; count == 0 || n < count; n++ {
		select {
		case e := <-events:
			if err := t.printEvent(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	last, cancel := t.within(ctx)
	defer cancel()
	return remove(last)
}

// AddWatch sets a watch that stays. In a shell its events are printed as they come; else it is Watch.
func (t *Tool) AddWatch(ctx context.Context, p string, recursive bool) error {
	if !t.o.Shell {
		return t.Watch(ctx, p, recursive, 0)
	}
	in, cancel := t.within(ctx)
	defer cancel()
	_, err := t.zk.AddWatch(in, clean(p), recursive, t.printLater)
	return err
}

// RemoveWatches takes a shell's watches of a type on a node away; with local also when no server can be reached.
func (t *Tool) RemoveWatches(ctx context.Context, p string, typ zkclient.WatchType, local bool) error {
	in, cancel := t.within(ctx)
	defer cancel()
	return t.zk.RemoveWatches(in, clean(p), typ, local)
}
