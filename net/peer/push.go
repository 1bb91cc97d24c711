package peer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/engine/store"
	"platter/replication/replica"
)

// Versions of the controller's requests, all as Kafka 3.9 sends them in ZooKeeper mode.
const (
	leaderAndISRVersion   = 7
	stopReplicaVersion    = 4
	updateMetadataVersion = 8
)

const (
	// Types of LeaderAndISR and UpdateMetadata (AbstractControlRequest.Type).
	typeIncremental = 1
	typeFull        = 2
	// updateTypeTag is the tagged field of UpdateMetadata 8 that holds its type (UpdateMetadataRequest.json).
	updateTypeTag = 0
	// leaderDuringDelete is the leader of a partition that is being deleted (LeaderAndIsr.LeaderDuringDelete).
	leaderDuringDelete = -2
	// securityPlaintext is the only protocol so far (SecurityProtocol.id).
	securityPlaintext = 0
)

// Controller lane: pushes go one after the other.
const pushLane = "controller"

// Pushes is the way of the controller's words: over the wire to the other brokers, by Self to this one.
type Pushes struct {
	*Pool
	Self controller.Brokers
}

var _ controller.Brokers = Pushes{}

// push sends a controller's request, within its time.
func (p Pushes) push(ctx context.Context, to cluster.Broker, req kmsg.Request) (kmsg.Response, error) {
	if p.cfg.PushTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.cfg.PushTimeout)
		defer cancel()
	}
	return p.do(ctx, to, pushLane, req)
}

// LeaderAndISR implements controller.Brokers.
func (p Pushes) LeaderAndISR(ctx context.Context, to cluster.Broker, r controller.LeaderAndISR) ([]error, error) {
	if to.ID == p.cfg.BrokerID {
		return p.Self.LeaderAndISR(ctx, to, r)
	}
	req := kmsg.NewPtrLeaderAndISRRequest()
	req.Version = leaderAndISRVersion
	req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = r.ControllerID, r.ControllerEpoch, r.BrokerEpoch
	req.Type = typeIncremental
	if r.Full {
		req.Type = typeFull
	}
	at := map[store.UUID]int{}
	for i := range r.Partitions {
		s := &r.Partitions[i]
		k, ok := at[s.TopicID]
		if !ok {
			k = len(req.TopicStates)
			at[s.TopicID] = k
			t := kmsg.NewLeaderAndISRRequestTopicState()
			t.Topic, t.TopicID = s.TP.Topic, s.TopicID
			req.TopicStates = append(req.TopicStates, t)
		}
		req.TopicStates[k].PartitionStates = append(req.TopicStates[k].PartitionStates, partitionState(s))
	}
	answer, err := p.push(ctx, to, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.LeaderAndISRResponse)
	if err := errorOf(resp.ErrorCode); err != nil {
		return nil, err
	}
	type key struct {
		id store.UUID
		n  int32
	}
	codes := map[key]int16{}
	for _, t := range resp.Topics {
		for _, q := range t.Partitions {
			codes[key{t.TopicID, q.Partition}] = q.ErrorCode
		}
	}
	errs := make([]error, len(r.Partitions))
	for i := range r.Partitions {
		code, ok := codes[key{r.Partitions[i].TopicID, r.Partitions[i].TP.Partition}]
		if errs[i] = staleOr(code); !ok {
			return nil, &Unreachable{to.ID, fmt.Errorf("LeaderAndISR: no answer for %s", r.Partitions[i].TP)}
		}
	}
	return errs, nil
}

// staleOr is the error of a partition's code; a stale leader epoch there is the replica's.
func staleOr(code int16) error {
	if err := errorOf(code); err != controller.ErrStaleController {
		return err
	}
	return replica.ErrStaleEpoch
}

func partitionState(s *controller.PartitionState) kmsg.LeaderAndISRRequestTopicPartition {
	q := kmsg.NewLeaderAndISRRequestTopicPartition()
	q.Partition = s.TP.Partition
	q.ControllerEpoch, q.Leader, q.LeaderEpoch = s.State.ControllerEpoch, s.State.Leader, s.State.LeaderEpoch
	q.ISR, q.ZKVersion, q.Replicas = s.State.ISR, s.PartitionEpoch, s.Replicas
	q.AddingReplicas, q.RemovingReplicas, q.IsNew = s.Adding, s.Removing, s.New
	if s.State.Recovering {
		q.LeaderRecoveryState = 1
	}
	return q
}

// StopReplica implements controller.Brokers.
func (p Pushes) StopReplica(ctx context.Context, to cluster.Broker, r controller.StopReplica) ([]error, error) {
	if to.ID == p.cfg.BrokerID {
		return p.Self.StopReplica(ctx, to, r)
	}
	req := kmsg.NewPtrStopReplicaRequest()
	req.Version = stopReplicaVersion
	req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = r.ControllerID, r.ControllerEpoch, r.BrokerEpoch
	at := map[string]int{}
	for i := range r.Partitions {
		s := &r.Partitions[i]
		k, ok := at[s.TP.Topic]
		if !ok {
			k = len(req.Topics)
			at[s.TP.Topic] = k
			t := kmsg.NewStopReplicaRequestTopic()
			t.Topic = s.TP.Topic
			req.Topics = append(req.Topics, t)
		}
		q := kmsg.NewStopReplicaRequestTopicPartitionState()
		q.Partition, q.LeaderEpoch, q.Delete = s.TP.Partition, s.LeaderEpoch, s.Delete
		req.Topics[k].PartitionStates = append(req.Topics[k].PartitionStates, q)
	}
	answer, err := p.push(ctx, to, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.StopReplicaResponse)
	if err := errorOf(resp.ErrorCode); err != nil {
		return nil, err
	}
	codes := map[store.TP]int16{}
	for _, q := range resp.Partitions {
		codes[store.TP{Topic: q.Topic, Partition: q.Partition}] = q.ErrorCode
	}
	errs := make([]error, len(r.Partitions))
	for i := range r.Partitions {
		errs[i] = staleOr(codes[r.Partitions[i].TP])
	}
	return errs, nil
}

// UpdateMetadata implements controller.Brokers.
func (p Pushes) UpdateMetadata(ctx context.Context, to cluster.Broker, r controller.UpdateMetadata) error {
	if to.ID == p.cfg.BrokerID {
		return p.Self.UpdateMetadata(ctx, to, r)
	}
	req := kmsg.NewPtrUpdateMetadataRequest()
	req.Version = updateMetadataVersion
	req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = r.ControllerID, r.ControllerEpoch, r.BrokerEpoch
	kind := byte(typeIncremental)
	if r.Update.Full {
		kind = typeFull
	}
	req.UnknownTags.Set(updateTypeTag, []byte{kind})
	for _, b := range r.Update.Brokers {
		req.LiveBrokers = append(req.LiveBrokers, liveBroker(&b))
	}
	for i := range r.Update.Topics {
		req.TopicStates = append(req.TopicStates, topicState(&r.Update.Topics[i]))
	}
	answer, err := p.push(ctx, to, req)
	if err != nil {
		return err
	}
	return errorOf(answer.(*kmsg.UpdateMetadataResponse).ErrorCode)
}

func liveBroker(b *cluster.Broker) kmsg.UpdateMetadataRequestLiveBroker {
	out := kmsg.NewUpdateMetadataRequestLiveBroker()
	out.ID = b.ID
	if b.Rack != "" {
		out.Rack = kmsg.StringPtr(b.Rack)
	}
	for _, e := range b.Endpoints {
		o := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
		o.Host, o.Port, o.ListenerName, o.SecurityProtocol = e.Host, e.Port, e.Listener, securityPlaintext
		out.Endpoints = append(out.Endpoints, o)
	}
	return out
}

func topicState(t *cluster.TopicUpdate) kmsg.UpdateMetadataRequestTopicState {
	out := kmsg.NewUpdateMetadataRequestTopicState()
	out.Topic, out.TopicID = t.Name, t.ID
	if t.Deleted {
		q := kmsg.NewUpdateMetadataRequestTopicPartition()
		q.Leader = leaderDuringDelete
		out.PartitionStates = append(out.PartitionStates, q)
		return out
	}
	for n, s := range t.Partitions {
		q := kmsg.NewUpdateMetadataRequestTopicPartition()
		q.Partition, q.ControllerEpoch, q.Leader, q.LeaderEpoch = n, s.ControllerEpoch, s.Leader, s.LeaderEpoch
		q.ISR, q.ZKVersion, q.Replicas, q.OfflineReplicas = s.ISR, s.ZkVersion, s.Replicas, s.OfflineReplicas
		out.PartitionStates = append(out.PartitionStates, q)
	}
	return out
}

// DecodeLeaderAndISR, DecodeStopReplica and DecodeUpdateMetadata read what a controller sent: of the versions from
// 5, 3 and 7 on, which name topics' ids and replicas' epochs.
func DecodeLeaderAndISR(req *kmsg.LeaderAndISRRequest) controller.LeaderAndISR {
	r := controller.LeaderAndISR{
		Header: controller.Header{ControllerID: req.ControllerID, ControllerEpoch: req.ControllerEpoch, BrokerEpoch: req.BrokerEpoch},
		Full:   req.Type == typeFull,
	}
	for i := range req.TopicStates {
		t := &req.TopicStates[i]
		for j := range t.PartitionStates {
			q := &t.PartitionStates[j]
			r.Partitions = append(r.Partitions, controller.PartitionState{
				TP: store.TP{Topic: t.Topic, Partition: q.Partition}, TopicID: t.TopicID,
				State: cluster.State{
					ControllerEpoch: q.ControllerEpoch, Leader: q.Leader, LeaderEpoch: q.LeaderEpoch, ISR: q.ISR,
					ZkVersion: q.ZKVersion, Recovering: q.LeaderRecoveryState == 1,
				},
				PartitionEpoch: q.ZKVersion, Replicas: q.Replicas, Adding: q.AddingReplicas, Removing: q.RemovingReplicas,
				New: q.IsNew,
			})
		}
	}
	return r
}

// DecodeStopReplica: see DecodeLeaderAndISR.
func DecodeStopReplica(req *kmsg.StopReplicaRequest) controller.StopReplica {
	r := controller.StopReplica{
		Header: controller.Header{ControllerID: req.ControllerID, ControllerEpoch: req.ControllerEpoch, BrokerEpoch: req.BrokerEpoch},
	}
	for i := range req.Topics {
		for _, q := range req.Topics[i].PartitionStates {
			r.Partitions = append(r.Partitions, controller.StopPartition{
				TP: store.TP{Topic: req.Topics[i].Topic, Partition: q.Partition}, LeaderEpoch: q.LeaderEpoch, Delete: q.Delete,
			})
		}
	}
	return r
}

// DecodeUpdateMetadata: see DecodeLeaderAndISR.
func DecodeUpdateMetadata(req *kmsg.UpdateMetadataRequest) controller.UpdateMetadata {
	r := controller.UpdateMetadata{
		Header: controller.Header{ControllerID: req.ControllerID, ControllerEpoch: req.ControllerEpoch, BrokerEpoch: req.BrokerEpoch},
	}
	u := &r.Update
	u.ControllerID, u.ControllerEpoch = req.ControllerID, req.ControllerEpoch
	req.UnknownTags.Each(func(tag uint32, value []byte) {
		if tag == updateTypeTag && len(value) == 1 {
			u.Full = value[0] == typeFull
		}
	})
	for i := range req.LiveBrokers {
		b := &req.LiveBrokers[i]
		o := cluster.Broker{ID: b.ID}
		if b.Rack != nil {
			o.Rack = *b.Rack
		}
		for _, e := range b.Endpoints {
			o.Endpoints = append(o.Endpoints, cluster.Endpoint{Listener: e.ListenerName, Protocol: "PLAINTEXT", Host: e.Host, Port: e.Port})
		}
		u.Brokers = append(u.Brokers, o)
	}
	for i := range req.TopicStates {
		u.Topics = append(u.Topics, decodeTopic(&req.TopicStates[i]))
	}
	return r
}

func decodeTopic(t *kmsg.UpdateMetadataRequestTopicState) cluster.TopicUpdate {
	o := cluster.TopicUpdate{Name: t.Topic, ID: t.TopicID, Partitions: map[int32]cluster.Partition{}}
	for j := range t.PartitionStates {
		q := &t.PartitionStates[j]
		if q.Leader == leaderDuringDelete {
			return cluster.TopicUpdate{Name: t.Topic, ID: t.TopicID, Deleted: true}
		}
		o.Partitions[q.Partition] = cluster.Partition{
			Leader: q.Leader, LeaderEpoch: q.LeaderEpoch, ControllerEpoch: q.ControllerEpoch, ISR: q.ISR,
			Replicas: q.Replicas, OfflineReplicas: q.OfflineReplicas, ZkVersion: q.ZKVersion,
		}
	}
	return o
}
