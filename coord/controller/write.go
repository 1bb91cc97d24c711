package controller

import (
	"errors"
	"fmt"

	"platter/coord/cluster"
	"platter/coord/zkclient"
	"platter/engine/store"
)

// A multi stays well below jute.maxbuffer (0xfffff bytes by default), request and answer.
const (
	multiBytesMax = 512 << 10
	multiOpsMax   = 4000
)

// multi does ops under the fence: errDeposed when another controller was elected. A failed op's error
// is an *opError with its index.
func (t *term) multi(ops ...zkclient.Op) ([]zkclient.Result, error) {
	all := append([]zkclient.Op{zkclient.CheckOp(cluster.ControllerEpochPath, t.fence)}, ops...)
	results, err := t.zk.Multi(t.ctx, all...)
	if err == nil {
		return results[1:], nil
	}
	for i, r := range results {
		switch {
		case r.Err == nil:
		case i == 0:
			return nil, errDeposed
		default:
			return nil, &opError{index: i - 1, err: err}
		}
	}
	return nil, err
}

// opError is a multi that was refused for one op.
type opError struct {
	index int
	err   error
}

func (e *opError) Error() string { return e.err.Error() }
func (e *opError) Unwrap() error { return e.err }

// batch gathers ops that may be split at certain points.
type batch struct {
	ops   []zkclient.Op
	bytes int
}

func (b *batch) add(ops ...zkclient.Op) {
	b.ops = append(b.ops, ops...)
	for _, o := range ops {
		b.bytes += o.Bytes()
	}
}

// full says that ops would not fit any more.
func (b *batch) full(ops []zkclient.Op) bool {
	n := b.bytes
	for _, o := range ops {
		n += o.Bytes()
	}
	return len(b.ops) > 0 && (n > multiBytesMax || len(b.ops)+len(ops) > multiOpsMax)
}

// writeStates writes changed states, as few multis as fit, and commits what was written. A state that
// changed behind our back is read again, and waits for the next round.
func (t *term) writeStates(changes []change) error {
	for len(changes) > 0 {
		var b batch
		var last []int // index of the op that holds the state, by change
		n := 0
		for ; n < len(changes); n++ {
			ops := t.stateOps(&changes[n], changes[:n])
			if b.full(ops) {
				break
			}
			b.add(ops...)
			last = append(last, len(b.ops)-1)
		}
		results, err := t.multi(b.ops...)
		var refused *opError
		switch {
		case errors.As(err, &refused):
			bad := 0
			for last[bad] < refused.index {
				bad++
			}
			if err := t.refresh(changes[bad], refused); err != nil {
				return err
			}
			changes = append(append([]change(nil), changes[:bad]...), changes[bad+1:]...)
			continue
		case err != nil:
			return err
		}
		for i, ch := range changes[:n] {
			t.note(&ch)
			t.core.commit(ch, t.epoch, results[last[i]].Stat.Version)
		}
		changes = changes[n:]
	}
	return nil
}

// stateOps are the ops that write one state, the last of them the state itself; before are the changes
// ahead of it in the same multi.
func (t *term) stateOps(ch *change, before []change) []zkclient.Op {
	if !ch.isNew {
		s := ch.state
		s.ControllerEpoch, s.Known = t.epoch, t.core.newest
		path := cluster.StatePath(ch.tp.Topic, ch.tp.Partition)
		return []zkclient.Op{zkclient.SetOp(path, cluster.EncodeState(s), s.ZkVersion)}
	}
	var ops []zkclient.Op
	if t.core.needsContainer(ch.tp, before) {
		ops = append(ops, zkclient.CreateOp(cluster.PartitionsPath(ch.tp.Topic), nil, zkclient.Persistent))
	}
	return append(ops, t.newStateOps(ch)...)
}

// newStateOps make a new partition's znodes.
func (t *term) newStateOps(ch *change) []zkclient.Op {
	s := ch.state
	s.ControllerEpoch, s.Known = t.epoch, t.core.newest
	return []zkclient.Op{
		zkclient.CreateOp(cluster.PartitionPath(ch.tp.Topic, ch.tp.Partition), nil, zkclient.Persistent),
		zkclient.CreateOp(cluster.StatePath(ch.tp.Topic, ch.tp.Partition), cluster.EncodeState(s), zkclient.Persistent),
	}
}

// needsContainer: the topic's node "partitions" is made with the first of its partitions.
func (c *core) needsContainer(tp store.TP, before []change) bool {
	if len(before) > 0 && before[len(before)-1].tp.Topic == tp.Topic && before[len(before)-1].isNew {
		return false
	}
	t := c.topics[tp.Topic]
	for i := range t.parts {
		if t.parts[i].exists {
			return false
		}
	}
	return !t.container
}

// refresh reads what stands in the way of a change.
func (t *term) refresh(ch change, why error) error {
	t.c.cfg.Log.Warn("a partition's state changed behind the controller's back", "topic", ch.tp.Topic, "partition", ch.tp.Partition, "err", why)
	topic := t.core.topics[ch.tp.Topic]
	if topic == nil {
		return nil
	}
	if _, err := t.zk.Exists(t.ctx, cluster.PartitionsPath(topic.name), nil); err == nil {
		topic.container = true
	} else if !isNoNode(err) {
		return err
	}
	path := cluster.StatePath(topic.name, ch.tp.Partition)
	p, stat, err := t.zk.Get(t.ctx, path, nil)
	switch {
	case isNoNode(err) && !ch.isNew:
		return fmt.Errorf("%s is gone", path)
	case isNoNode(err):
		// Only the node above it is there: an earlier creation was cut short, or another tool's.
		err := t.zk.Delete(t.ctx, cluster.PartitionPath(topic.name, ch.tp.Partition), -1)
		if err != nil && !isNoNode(err) {
			return err
		}
		return nil
	case err != nil:
		return err
	}
	s, err := cluster.DecodeState(p)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t.core.setState(topic, int(ch.tp.Partition), s.At(stat.Version, stat.Mzxid))
	return nil
}
