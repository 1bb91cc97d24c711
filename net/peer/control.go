package peer

import (
	"bytes"
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/engine/store"
)

const (
	alterPartitionVersion     = 3
	controlledShutdownVersion = 3
	askLane                   = "ask" // what brokers ask the controller

	// forwardLane names the lanes of what is forwarded. A request takes one that is idle, so that those for which the
	// controller takes its time (a topic whose name is not free yet) hold up no others; only when all are busy it waits
	// for one of them.
	forwardLane  = "forward"
	forwardLanes = 64
)

// controllerBroker is the controller as this broker knows it.
func (p *Pool) controllerBroker() (cluster.Broker, error) {
	img := p.cfg.Image()
	b, ok := img.Broker(img.ControllerID)
	if !ok {
		return b, fmt.Errorf("%w: none is known", controller.ErrNotController)
	}
	return b, nil
}

// AlterPartition asks the controller for other in-sync sets (KIP-497); answers are in the order given. Errors
// as controller.Controller.AlterPartition's, or *Unreachable.
func (p *Pool) AlterPartition(ctx context.Context, changes []controller.ISRChange) ([]controller.ISRAnswer, error) {
	to, err := p.controllerBroker()
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrAlterPartitionRequest()
	req.Version, req.BrokerID, req.BrokerEpoch = alterPartitionVersion, p.cfg.BrokerID, p.cfg.Epoch()
	at := map[store.UUID]int{}
	for i := range changes {
		c := &changes[i]
		k, ok := at[c.TopicID]
		if !ok {
			k = len(req.Topics)
			at[c.TopicID] = k
			t := kmsg.NewAlterPartitionRequestTopic()
			t.TopicID = c.TopicID
			req.Topics = append(req.Topics, t)
		}
		q := kmsg.NewAlterPartitionRequestTopicPartition()
		q.Partition, q.LeaderEpoch, q.PartitionEpoch = c.TP.Partition, c.LeaderEpoch, c.PartitionEpoch
		for _, m := range c.ISR {
			n := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
			n.BrokerID, n.BrokerEpoch = m.Broker, m.Epoch
			q.NewEpochISR = append(q.NewEpochISR, n)
		}
		req.Topics[k].Partitions = append(req.Topics[k].Partitions, q)
	}
	answer, err := p.do(ctx, to, askLane, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.AlterPartitionResponse)
	if err := errorOf(resp.ErrorCode); err != nil {
		return nil, err
	}
	return isrAnswers(changes, resp)
}

func isrAnswers(changes []controller.ISRChange, resp *kmsg.AlterPartitionResponse) ([]controller.ISRAnswer, error) {
	type key struct {
		id store.UUID
		n  int32
	}
	found := map[key]controller.ISRAnswer{}
	for _, t := range resp.Topics {
		for _, q := range t.Partitions {
			err := errorOf(q.ErrorCode)
			if q.ErrorCode == 74 {
				err = controller.ErrFencedLeader
			}
			found[key{t.TopidID, q.Partition}] = controller.ISRAnswer{
				Leader: q.LeaderID, LeaderEpoch: q.LeaderEpoch, PartitionEpoch: q.PartitionEpoch, ISR: q.ISR, Err: err,
			}
		}
	}
	out := make([]controller.ISRAnswer, len(changes))
	for i := range changes {
		a, ok := found[key{changes[i].TopicID, changes[i].TP.Partition}]
		if !ok {
			return nil, fmt.Errorf("AlterPartition: no answer for %s", changes[i].TP)
		}
		out[i] = a
	}
	return out, nil
}

// ControlledShutdown asks the controller to move this broker's leaderships away.
func (p *Pool) ControlledShutdown(ctx context.Context) (remaining []store.TP, err error) {
	to, err := p.controllerBroker()
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrControlledShutdownRequest()
	req.Version, req.BrokerID, req.BrokerEpoch = controlledShutdownVersion, p.cfg.BrokerID, p.cfg.Epoch()
	answer, err := p.do(ctx, to, askLane, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.ControlledShutdownResponse)
	for _, r := range resp.PartitionsRemaining {
		remaining = append(remaining, store.TP{Topic: r.Topic, Partition: r.Partition})
	}
	return remaining, errorOf(resp.ErrorCode)
}

// ForwardClient is the client id of what one broker forwards to another. It is not forwarded again, or two brokers
// that each take the other for the controller would pass it to and fro.
const ForwardClient = "platter-forward"

// Forward sends a client's request on to the controller as it came, and gives the body of the answer, which is
// the caller's. controller.ErrNotController: none is known; *Unreachable.
func (p *Pool) Forward(ctx context.Context, key, version int16, flexible bool, body []byte) ([]byte, error) {
	to, err := p.controllerBroker()
	if err != nil {
		return nil, err
	}
	if to.ID == p.cfg.BrokerID {
		return nil, fmt.Errorf("%w: it is being elected", controller.ErrNotController)
	}
	var answer []byte
	err = p.exchange(ctx, to, forwardLane, call{
		flexible: flexible,
		request:  func(dst []byte, id int32) []byte { return appendRaw(dst, key, version, flexible, id, body) },
		take: func(body []byte) error {
			answer = bytes.Clone(body)
			return nil
		},
	})
	if err != nil {
		return nil, &Unreachable{to.ID, fmt.Errorf("%s: %w", kmsg.NameForKey(key), err)}
	}
	return answer, nil
}

// CreateTopics asks the controller for topics, for clients that named one that is missing.
func (p *Pool) CreateTopics(ctx context.Context, ts []controller.NewTopic) []controller.Created {
	out := make([]controller.Created, len(ts))
	fail := func(err error) []controller.Created {
		for i := range ts {
			out[i] = controller.Created{Name: ts[i].Name, PartitionCount: -1, ReplicationFactor: -1, Err: err}
		}
		return out
	}
	to, err := p.controllerBroker()
	if err != nil {
		return fail(err)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	req.TimeoutMillis = timeoutOf(ctx)
	for i := range ts {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = ts[i].Name, ts[i].PartitionCount, ts[i].ReplicationFactor
		for name, value := range ts[i].Configs {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = name, value
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	answer, err := p.do(ctx, to, forwardLane, req)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", controller.ErrNotController, err))
	}
	byName := map[string]kmsg.CreateTopicsResponseTopic{}
	for _, t := range answer.(*kmsg.CreateTopicsResponse).Topics {
		byName[t.Topic] = t
	}
	for i := range ts {
		t, ok := byName[ts[i].Name]
		out[i] = controller.Created{Name: ts[i].Name, ID: t.TopicID, PartitionCount: t.NumPartitions, ReplicationFactor: t.ReplicationFactor, Err: createError(t.ErrorCode)}
		if !ok {
			out[i].Err = controller.ErrNotController
		}
	}
	return out
}
