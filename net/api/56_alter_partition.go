package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/controller"
	"platter/engine/store"
)

// AlterPartition (KIP-497, KIP-903): a leader wants other in-sync sets. Versions 2 and 3, which name topics' ids.
// Behaviour:
//   - only the controller answers (NOT_CONTROLLER); a broker that has registered anew is STALE_BROKER_EPOCH;
//   - another leader or leader epoch is FENCED_LEADER_EPOCH, an older partition epoch INVALID_UPDATE_VERSION;
//   - who joins has to be registered as the leader saw it (version 3) and not be shutting down: INELIGIBLE_REPLICA.
func init() { register(kmsg.AlterPartition, 2, 3, (*Handler).alterPartition) }

func (h *Handler) alterPartition(c call, req *kmsg.AlterPartitionRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrAlterPartitionResponse()
	img := h.Image()
	var changes []controller.ISRChange
	for i := range req.Topics {
		t := &req.Topics[i]
		name := ""
		if known := img.ByID[t.TopicID]; known != nil {
			name = known.Name
		}
		for j := range t.Partitions {
			changes = append(changes, isrChange(name, t.TopicID, &t.Partitions[j]))
		}
	}
	answers, err := h.Controller.AlterPartition(c.ctx, req.BrokerID, req.BrokerEpoch, changes)
	resp.ErrorCode = h.count(c, codeOf(err))
	if err != nil {
		return resp, nil
	}
	n := 0
	for i := range req.Topics {
		t := kmsg.NewAlterPartitionResponseTopic()
		t.TopidID = req.Topics[i].TopicID
		for j := range req.Topics[i].Partitions {
			a := &answers[n]
			n++
			q := kmsg.NewAlterPartitionResponseTopicPartition()
			q.Partition, q.ErrorCode = req.Topics[i].Partitions[j].Partition, h.count(c, codeOf(a.Err))
			q.LeaderID, q.LeaderEpoch, q.ISR, q.PartitionEpoch = a.Leader, a.LeaderEpoch, a.ISR, a.PartitionEpoch
			t.Partitions = append(t.Partitions, q)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}

func isrChange(topic string, id store.UUID, q *kmsg.AlterPartitionRequestTopicPartition) controller.ISRChange {
	ch := controller.ISRChange{
		TP: store.TP{Topic: topic, Partition: q.Partition}, TopicID: id, LeaderEpoch: q.LeaderEpoch, PartitionEpoch: q.PartitionEpoch,
	}
	for _, m := range q.NewEpochISR {
		ch.ISR = append(ch.ISR, controller.ISRMember{Broker: m.BrokerID, Epoch: m.BrokerEpoch})
	}
	for _, b := range q.NewISR {
		ch.ISR = append(ch.ISR, controller.ISRMember{Broker: b, Epoch: -1})
	}
	return ch
}
