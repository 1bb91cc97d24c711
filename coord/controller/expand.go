package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"platter/coord/cluster"
	"platter/coord/zkclient"
)

// ErrReassigning: the topic's replicas are being moved, so its partitions cannot be added to.
var ErrReassigning = errors.New("a reassignment is in progress")

// MorePartitions is one topic to grow.
type MorePartitions struct {
	Topic        string
	Count        int32     // of all partitions afterwards
	Assignment   [][]int32 // replicas of the new partitions; nil: placed by the controller
	ValidateOnly bool
}

// CreatePartitions adds partitions and waits until their leaders serve, or ctx ends: then they may still
// come to be. Errors are in the order given. A topic that would bring the request above
// PartitionsPerRequestMax new partitions is refused.
func (c *Controller) CreatePartitions(ctx context.Context, ms []MorePartitions) []error {
	out, err := ask(ctx, c, func(t *term) []error { return t.createPartitions(ms) })
	if err != nil {
		out = slices.Repeat([]error{err}, len(ms))
	}
	return out
}

func (t *term) createPartitions(ms []MorePartitions) []error {
	out := make([]error, len(ms))
	budget := PartitionsPerRequestMax
	var failed error
	var grown []int
	for i := range ms {
		if failed != nil {
			out[i] = fmt.Errorf("%w: %w", ErrNotController, failed)
			continue
		}
		wrote, err := t.grow(&ms[i], &budget)
		var fault *fault
		if errors.As(err, &fault) {
			failed = fault.err
			out[i] = fmt.Errorf("%w: %w", ErrNotController, failed)
			continue
		}
		if out[i] = err; wrote {
			grown = append(grown, i)
		}
	}
	if failed == nil && len(grown) > 0 {
		failed = t.settle()
	}
	if failed != nil {
		t.unknown(failed)
	}
	for _, i := range grown {
		if out[i] = t.served(ms[i].Topic); out[i] != nil && failed != nil {
			out[i] = fmt.Errorf("%w: %w", ErrNotController, failed)
		}
	}
	return out
}

// fault is a failure of the coordinator or of this term, other than what a request did wrong.
type fault struct{ err error }

func (e *fault) Error() string { return e.err.Error() }

// grow validates one topic's new partitions and writes the longer assignment; their states follow by
// settle, and by the next controller should this one die in between.
func (t *term) grow(m *MorePartitions, budget *int) (wrote bool, err error) {
	topic := t.core.topics[m.Topic]
	if topic == nil || topic.deleting {
		return false, fmt.Errorf("%w: the topic '%s' does not exist", ErrUnknownTopic, m.Topic)
	}
	more := int(m.Count) - len(topic.parts)
	switch {
	case more < 0:
		return false, fmt.Errorf("%w: the topic %s currently has %d partition(s), which is higher than the requested %d", ErrInvalidPartitions, m.Topic, len(topic.parts), m.Count)
	case more == 0:
		return false, fmt.Errorf("%w: topic %s already has %d partition(s)", ErrInvalidPartitions, m.Topic, m.Count)
	case more > *budget:
		return false, fmt.Errorf("%w: excessively large number of partitions in one request, at most %d", ErrInvalidPartitions, PartitionsPerRequestMax)
	case topic.reassigning():
		return false, fmt.Errorf("%w: topic %s", ErrReassigning, m.Topic)
	}
	fresh, err := t.assignMore(topic, m, more)
	if err != nil {
		return false, err
	}
	path := cluster.TopicPath(m.Topic)
	p, stat, err := t.zk.Get(t.ctx, path, nil)
	if err != nil {
		return false, &fault{err}
	}
	a, err := cluster.DecodeAssignment(p)
	if err != nil || a.ID != topic.id || len(a.Replicas) != len(topic.parts) {
		return false, &fault{fmt.Errorf("%s changed behind the controller's back (%v)", path, err)}
	}
	a.Replicas = append(a.Replicas, fresh...)
	value := cluster.EncodeAssignment(a)
	if len(value) > multiBytesMax {
		return false, fmt.Errorf("%w: the assignment of %d partitions takes %d bytes, more than a znode may have (%d)",
			ErrInvalidPartitions, len(a.Replicas), len(value), multiBytesMax)
	}
	*budget -= more
	if m.ValidateOnly {
		return false, nil
	}
	if _, err := t.multi(zkclient.SetOp(path, value, stat.Version)); err != nil {
		return false, &fault{err}
	}
	t.core.setTopic(m.Topic, a, t.c.unclean(m.Topic))
	return true, nil
}

// assignMore gives the new partitions' replicas, as asked for by hand or placed behind the old ones.
func (t *term) assignMore(topic *topic, m *MorePartitions, more int) ([][]int32, error) {
	factor := len(topic.parts[0].replicas)
	live := t.core.usable()
	if m.Assignment == nil {
		// The ring goes on where the topic's own ends, so that leaders stay evenly spread.
		start := max(0, slices.IndexFunc(live, func(b cluster.Broker) bool { return b.ID >= topic.parts[0].replicas[0] }))
		return t.core.place(live, start+len(topic.parts), more, factor)
	}
	if len(m.Assignment) != more {
		return nil, fmt.Errorf("%w: increasing the number of partitions by %d but %d assignments provided", ErrInvalidAssignment, more, len(m.Assignment))
	}
	for _, ids := range m.Assignment {
		if len(ids) != factor {
			return nil, fmt.Errorf("%w: inconsistent replication factor between partitions: the topic has %d, the assignment names %d", ErrInvalidAssignment, factor, len(ids))
		}
	}
	return m.Assignment, t.checkReplicas(m.Assignment, len(topic.parts))
}

func (topic *topic) reassigning() bool {
	return slices.ContainsFunc(topic.parts, func(p partition) bool { return len(p.adding)+len(p.removing) > 0 })
}
