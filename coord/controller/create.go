package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"platter/coord/cluster"
)

// createCountMax bounds how many topics of waiting requests are created together.
const createCountMax = 1000

// PartitionsPerRequestMax bounds what one request may create, as KRaft's controller does
// (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH).
const PartitionsPerRequestMax = 10_000

// ConfigBytesMax bounds the overrides of a topic or broker as they are kept, so that they fit into one multi with
// what is written beside them.
const ConfigBytesMax = 128 << 10

// creation is one waiting request.
type creation struct {
	topics []NewTopic
	done   chan []Created // has room
}

// CreateTopics creates and waits until the leaders serve, or ctx ends: then they may still come to be.
// Requests that wait together are written together. Topics beyond PartitionsPerRequestMax partitions are
// refused.
func (c *Controller) CreateTopics(ctx context.Context, ts []NewTopic) []Created {
	fit, count := 0, 0
	for ; fit < len(ts); fit++ {
		if count += max(int(ts[fit].PartitionCount), len(ts[fit].Assignment), 1); count > PartitionsPerRequestMax {
			break
		}
	}
	out := c.createFitting(ctx, ts[:fit])
	for c.awaitDeletions(ctx, out) {
		var again []NewTopic
		var at []int
		for i := range out {
			if errors.Is(out[i].Err, errDeleting) {
				again, at = append(again, ts[i]), append(at, i)
			}
		}
		for i, r := range c.createFitting(ctx, again) {
			out[at[i]] = r
		}
	}
	for _, n := range ts[fit:] {
		err := fmt.Errorf("%w: excessively large number of partitions in one request, at most %d", ErrInvalidPartitions, PartitionsPerRequestMax)
		out = append(out, Created{Name: n.Name, PartitionCount: -1, ReplicationFactor: -1, Err: err})
	}
	return out
}

func (c *Controller) createFitting(ctx context.Context, ts []NewTopic) []Created {
	if len(ts) == 0 {
		return nil
	}
	r := &creation{topics: ts, done: make(chan []Created, 1)}
	c.mu.Lock()
	c.creations = append(c.creations, r)
	c.mu.Unlock()
	err := c.do(ctx, func(t *term) error {
		for len(r.done) == 0 && t.loaded { // ours may come with others', now or before
			requests := c.takeCreations()
			if len(requests) == 0 {
				break
			}
			t.create(requests)
		}
		return nil
	})
	c.dropCreation(r)
	select {
	case out := <-r.done:
		return out
	default:
	}
	if err == nil {
		err = ErrNotController // no longer
	}
	out := make([]Created, len(ts))
	for i := range ts {
		out[i] = Created{Name: ts[i].Name, PartitionCount: -1, ReplicationFactor: -1, Err: err}
	}
	return out
}

// errDeleting: an earlier topic of the name is being deleted.
var errDeleting = fmt.Errorf("%w: an earlier topic of the name is marked for deletion", ErrTopicExists)

// deletionPoll is how often it is looked whether a name has become free.
const deletionPoll = 50 * time.Millisecond

// awaitDeletions waits a moment where topics could not be created since earlier ones of their names are being deleted, which
// may wait for a broker that is restarted; false: there are none, or ctx has ended.
func (c *Controller) awaitDeletions(ctx context.Context, out []Created) bool {
	if !slices.ContainsFunc(out, func(r Created) bool { return errors.Is(r.Err, errDeleting) }) {
		return false
	}
	select {
	case <-c.cfg.Clock.After(deletionPoll):
		return true
	case <-ctx.Done():
	case <-c.life.Done():
	}
	return false
}

// takeCreations takes the waiting requests, in order, up to a bound.
func (c *Controller) takeCreations() []*creation {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, count := 0, 0
	for n < len(c.creations) && (n == 0 || count+len(c.creations[n].topics) <= createCountMax) {
		count += len(c.creations[n].topics)
		n++
	}
	out := c.creations[:n:n]
	c.creations = c.creations[n:]
	return out
}

func (c *Controller) dropCreation(r *creation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.creations = slices.DeleteFunc(slices.Clone(c.creations), func(o *creation) bool { return o == r })
}

// create does the requests in one go, as if one came after the other.
func (t *term) create(requests []*creation) {
	var all []NewTopic
	for _, r := range requests {
		all = append(all, r.topics...)
	}
	out := t.createTopics(all)
	for _, r := range requests {
		n := len(r.topics)
		r.done <- out[:n:n]
		out = out[n:]
	}
}

// plan is a topic that is about to be created.
type plan struct {
	index      int // in the request
	name       string
	assignment cluster.Assignment
	configs    map[string]string
}

func (t *term) createTopics(ts []NewTopic) []Created {
	if len(ts) == 0 {
		return nil
	}
	out := make([]Created, len(ts))
	plans := &plans{names: map[string]bool{}, keys: map[string]bool{}}
	for i := range ts {
		out[i] = Created{Name: ts[i].Name, PartitionCount: -1, ReplicationFactor: -1}
		p, err := t.plan(&ts[i], plans)
		if err != nil {
			out[i].Err = err
			continue
		}
		p.index = i
		out[i].PartitionCount = int32(len(p.assignment.Replicas))
		out[i].ReplicationFactor = int16(len(p.assignment.Replicas[0]))
		if !ts[i].ValidateOnly {
			out[i].ID = p.assignment.ID
			plans.add(p)
		}
	}
	err := t.writeTopics(plans.list, out)
	if err == nil {
		err = t.settle()
	}
	if err != nil {
		t.unknown(err)
	}
	for _, p := range plans.list {
		if out[p.index].Err != nil {
			continue
		}
		out[p.index].Err = t.served(p.name)
		if err != nil && out[p.index].Err != nil {
			out[p.index].Err = fmt.Errorf("%w: %w", ErrNotController, err)
		}
	}
	return out
}

// unknown notes a failure in the midst of a request: everything is read again.
func (t *term) unknown(err error) {
	t.c.active.Store(false)
	if errors.Is(err, errDeposed) {
		t.depose()
		return
	}
	t.loaded = false
	t.c.cfg.Log.Error("controller: will read the cluster again", "err", err)
	t.c.raise(reread)
}

// served says whether each partition of a new topic has a leader.
func (t *term) served(name string) error {
	topic := t.core.topics[name]
	if topic == nil {
		return fmt.Errorf("%w: the topic %s is gone", ErrTimeout, name)
	}
	for i := range topic.parts {
		if p := &topic.parts[i]; !p.exists || p.state.Leader < 0 {
			return fmt.Errorf("%w: partition %d of the new topic %s has no leader", ErrTimeout, i, name)
		}
	}
	return nil
}

// plans are the topics that will be created together.
type plans struct {
	list        []plan
	names, keys map[string]bool
}

func (ps *plans) add(p plan) {
	ps.list = append(ps.list, p)
	ps.names[p.name], ps.keys[collisionKey(p.name)] = true, true
}

// plan validates a new topic and places it. others come ahead of it.
func (t *term) plan(n *NewTopic, others *plans) (plan, error) {
	if err := CheckTopicName(n.Name); err != nil {
		return plan{}, err
	}
	if err := t.checkFree(n.Name, others); err != nil {
		return plan{}, err
	}
	configs := make(map[string]string, len(n.Configs))
	for k, v := range n.Configs {
		if v == nil {
			return plan{}, fmt.Errorf("%w: null value not supported for topic configs: %s", ErrInvalidConfig, k)
		}
		configs[k] = *v
	}
	if check := t.c.cfg.CheckTopic; check != nil {
		if err := check(n.Name, configs); err != nil {
			return plan{}, fmt.Errorf("%w: %v", ErrInvalidConfig, err)
		}
	}
	replicas, err := t.assign(n)
	if err != nil {
		return plan{}, err
	}
	p := plan{name: n.Name, configs: configs, assignment: cluster.Assignment{ID: cluster.NewUUID(), Replicas: replicas}}
	settings := len(cluster.EncodeConfig(configs))
	if settings > ConfigBytesMax {
		return plan{}, fmt.Errorf("%w: the settings take %d bytes, at most %d are kept", ErrInvalidConfig, settings, ConfigBytesMax)
	}
	if size := len(cluster.EncodeAssignment(p.assignment)); size > multiBytesMax {
		return plan{}, fmt.Errorf("%w: the assignment of %d partitions takes %d bytes, more than a znode may have (%d)",
			ErrInvalidPartitions, len(replicas), size, multiBytesMax)
	}
	return p, nil
}

// checkFree: the name is not taken, and does not collide with another in metric names.
func (t *term) checkFree(name string, others *plans) error {
	if topic := t.core.topics[name]; topic != nil && topic.deleting {
		return fmt.Errorf("%w: '%s'", errDeleting, name)
	}
	if t.core.topics[name] != nil || others.names[name] {
		return fmt.Errorf("%w: topic '%s' already exists", ErrTopicExists, name)
	}
	if key := collisionKey(name); t.core.names[key] > 0 || others.keys[key] {
		return fmt.Errorf("%w: topic '%s' collides with an existing one ('.' and '_' are alike in metric names)", ErrInvalidTopic, name)
	}
	return nil
}

// assign gives the replicas by partition, as asked for by hand or placed.
func (t *term) assign(n *NewTopic) ([][]int32, error) {
	live := t.core.usable()
	if n.Assignment != nil {
		return n.Assignment, t.checkAssignment(n)
	}
	partitions, factor := n.PartitionCount, n.ReplicationFactor
	if partitions == -1 {
		partitions = max(t.c.cfg.PartitionCountDefault, 1)
	}
	if factor == -1 {
		factor = max(t.c.cfg.ReplicationDefault, 1)
	}
	switch {
	case partitions <= 0:
		return nil, fmt.Errorf("%w: number of partitions must be larger than 0", ErrInvalidPartitions)
	case factor <= 0:
		return nil, fmt.Errorf("%w: replication factor must be larger than 0", ErrInvalidReplication)
	}
	replicas, err := t.core.place(live, t.core.rotation, int(partitions), int(factor))
	if err == nil && !n.ValidateOnly {
		t.core.rotation++
	}
	return replicas, err
}

// place places on live brokers, where there are enough of them.
func (c *core) place(live []cluster.Broker, start, partitions, factor int) ([][]int32, error) {
	if factor <= len(live) {
		return place(live, start, partitions, factor), nil
	}
	replicas := placeBehind(live, c.away(), start, partitions, factor)
	if replicas == nil {
		return nil, fmt.Errorf("%w: replication factor: %d larger than available brokers: %d", ErrInvalidReplication, factor, len(live))
	}
	return replicas, nil
}

// checkAssignment holds a manual assignment against Kafka's rules.
func (t *term) checkAssignment(n *NewTopic) error {
	switch {
	case n.PartitionCount != -1 || n.ReplicationFactor != -1:
		return fmt.Errorf("%w: both numPartitions or replicationFactor and replicasAssignments were set", ErrInvalidAssignment)
	case len(n.Assignment) == 0:
		return fmt.Errorf("%w: no partitions", ErrInvalidAssignment)
	}
	return t.checkReplicas(n.Assignment, 0)
}

// checkReplicas: all partitions (the first has the number given) have equally many replicas, each on
// another broker that is there.
func (t *term) checkReplicas(assignment [][]int32, first int) error {
	for i, ids := range assignment {
		if len(ids) == 0 || len(ids) != len(assignment[0]) {
			return fmt.Errorf("%w: all partitions should have the same number of replicas, and at least one", ErrInvalidAssignment)
		}
		for j, id := range ids {
			if slices.Contains(ids[:j], id) {
				return fmt.Errorf("%w: duplicate replica assignment found: partition %d: %v", ErrInvalidAssignment, first+i, ids)
			}
			if _, ok := t.core.brokers[id]; !ok {
				return fmt.Errorf("%w: partition %d: broker %d is not known", ErrInvalidAssignment, first+i, id)
			}
		}
	}
	return nil
}
