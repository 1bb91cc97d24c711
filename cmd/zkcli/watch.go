package zkcli

import (
	"context"
	"errors"

	"platter/coord/zkclient"
)

// watcher is a watch that hands its event to a channel with room, or none.
func watcher(want bool, events chan zkclient.Event) func(zkclient.Event) {
	if !want {
		return nil
	}
	return func(e zkclient.Event) { events <- e }
}

// await waits for the one event of a watch and prints it.
func (t *Tool) await(ctx context.Context, want bool, events <-chan zkclient.Event) error {
	if !want {
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
	if t.o.JSON {
		return t.emit(struct {
			Event string `json:"event"`
			Path  string `json:"path"`
		}{eventNames[e.Type], e.Path})
	}
	return t.line("%s %s", eventNames[e.Type], e.Path)
}

// eventsMax is how many events may wait for a slow reader of the output; then Missed is printed.
const eventsMax = 1000

// Watch prints what happens at a node, and recursive below it, until ctx ends or count events have come (0: no
// limit). A server that has no persistent watches is told of by the error.
func (t *Tool) Watch(ctx context.Context, p string, recursive bool, count int) error {
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
	err = remove(ctx)
	if errors.Is(err, zkclient.ErrConnectionLoss) {
		return nil // it goes with the session
	}
	return err
}
