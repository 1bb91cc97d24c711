package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/replication/replica"
)

// DescribeProducers (KIP-664). Version 0. Behaviour: the leader tells the producers whose sequences it
// remembers. There are no transactions yet, so none has an open one, nor a coordinator's epoch.
func init() { register(kmsg.DescribeProducers, 0, 0, (*Handler).describeProducers) }

func (h *Handler) describeProducers(c call, req *kmsg.DescribeProducersRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeProducersResponse()
	for i := range req.Topics {
		t := kmsg.NewDescribeProducersResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, n := range req.Topics[i].Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition = n
			var err error
			p.ActiveProducers, err = h.producers(store.TP{Topic: t.Topic, Partition: n})
			p.ErrorCode, p.ErrorMessage = h.count(c, codeOf(err)), textOf(err)
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}

// producers are those that one partition's leader knows, by id.
func (h *Handler) producers(tp store.TP) ([]kmsg.DescribeProducersResponseTopicPartitionActiveProducer, error) {
	if !validTopicName(tp.Topic) {
		return nil, refuse(InvalidTopicException, "topic name %q is invalid", tp.Topic)
	}
	part, err := h.leader(tp)
	if err != nil {
		return nil, err
	}
	st, err := part.State(-1)
	if err != nil {
		return nil, err
	}
	if !st.IsLeader {
		return nil, replica.ErrNotLeader
	}
	var out []kmsg.DescribeProducersResponseTopicPartitionActiveProducer
	for _, known := range part.Log().Producers() {
		a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		a.ProducerID, a.ProducerEpoch = known.ProducerID, int32(known.Epoch)
		a.LastSequence, a.LastTimestamp = known.LastSequence, known.LastTimestampMs
		a.CoordinatorEpoch, a.CurrentTxnStartOffset = -1, -1
		out = append(out, a)
	}
	return out, nil
}
