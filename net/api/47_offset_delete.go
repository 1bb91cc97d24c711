package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
)

// OffsetDelete. Version 0 (KIP-496). Behaviour: offsets of topics that consumers of the group are subscribed
// to are GROUP_SUBSCRIBED_TO_TOPIC; a group of another kind must have no members (NON_EMPTY_GROUP). A partition
// that does not exist is UNKNOWN_TOPIC_OR_PARTITION, one without an offset no error.
func init() { register(kmsg.OffsetDelete, 0, 0, (*Handler).offsetDelete) }

func (h *Handler) offsetDelete(c call, req *kmsg.OffsetDeleteRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrOffsetDeleteResponse()
	var tps []store.TP
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			if h.hasPartition(t.Topic, p.Partition) {
				tps = append(tps, store.TP{Topic: t.Topic, Partition: p.Partition})
			}
		}
	}
	each, err := h.Groups.DeleteOffsets(req.Group, tps)
	resp.ErrorCode = h.count(c, codeOf(err))
	if err != nil {
		return resp, nil
	}
	n := 0
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetDeleteResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetDeleteResponseTopicPartition()
			rp.Partition = p.Partition
			code := UnknownTopicOrPartition
			if n < len(tps) && tps[n] == (store.TP{Topic: t.Topic, Partition: p.Partition}) {
				code = codeOf(each[n])
				n++
			}
			rp.ErrorCode = h.count(c, code)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, nil
}
