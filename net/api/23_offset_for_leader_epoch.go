package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/replication/replica"
)

// OffsetForLeaderEpoch (KIP-101, KIP-320). Versions 2 to 4. Behaviour: the largest epoch of the log not
// above the one asked for, and where it ends; -1 and -1 when the log knows none.
func init() { register(kmsg.OffsetForLeaderEpoch, 2, 4, (*Handler).offsetForLeaderEpoch) }

func (h *Handler) offsetForLeaderEpoch(c call, req *kmsg.OffsetForLeaderEpochRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for i := range req.Topics {
		t := &req.Topics[i]
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = t.Topic
		for j := range t.Partitions {
			p := &t.Partitions[j]
			rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rp.Partition, rp.LeaderEpoch, rp.EndOffset = p.Partition, -1, -1
			epoch, end, err := h.epochEnd(store.TP{Topic: t.Topic, Partition: p.Partition}, p)
			if err == nil {
				rp.LeaderEpoch, rp.EndOffset = epoch, end
			}
			rp.ErrorCode = h.count(c, codeOf(err))
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, nil
}

func (h *Handler) epochEnd(tp store.TP, q *kmsg.OffsetForLeaderEpochRequestTopicPartition) (epoch int32, end int64, err error) {
	part, err := h.leader(tp)
	if err != nil {
		return 0, 0, err
	}
	st, err := part.State(q.CurrentLeaderEpoch)
	if err != nil {
		return 0, 0, err
	}
	if !st.IsLeader {
		return 0, 0, replica.ErrNotLeader
	}
	epoch, end = part.Log().EndOffsetForEpoch(q.LeaderEpoch)
	return epoch, end, nil
}
