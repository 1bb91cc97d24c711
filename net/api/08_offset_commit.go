package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group"
	"platter/coord/group/core"
	"platter/engine/store"
)

// OffsetCommit. Versions 2 to 10. Behaviour:
//   - the answer comes when the offsets are stored and replicated;
//   - a partition that does not exist, or text that is too long, is refused alone;
//   - without member and generation, only a group without members takes offsets;
//   - versions 2 to 4 may say how long the offsets are to be kept;
//   - version 10 names topics by id: an unknown one is UNKNOWN_TOPIC_ID.
func init() { register(kmsg.OffsetCommit, 2, 10, (*Handler).offsetCommit) }

func (h *Handler) offsetCommit(c call, req *kmsg.OffsetCommitRequest) (kmsg.Response, error) {
	r := &group.CommitRequest{
		Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation, RetentionMs: -1,
	}
	if req.Version <= 4 {
		r.RetentionMs = req.RetentionTimeMillis
	}
	sound := 0
	for i := range req.Topics {
		t := &req.Topics[i]
		name, err := h.namedTopic(t.Topic, t.TopicID, req.Version >= 10)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := group.Committed{
				TP:     store.TP{Topic: name, Partition: p.Partition},
				Offset: core.Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch},
				Err:    err,
			}
			if p.Metadata != nil {
				o.Metadata = *p.Metadata
			}
			if req.Version < 6 {
				o.LeaderEpoch = -1
			}
			if o.Err == nil && !h.hasPartition(name, p.Partition) {
				o.Err = refuse(UnknownTopicOrPartition, "partition %d of topic %s does not exist", p.Partition, name)
			}
			if o.Err == nil {
				sound++
			}
			r.Offsets = append(r.Offsets, o)
		}
	}
	var all error
	if sound > 0 {
		all = h.Groups.Commit(r)
	}
	resp := kmsg.NewPtrOffsetCommitResponse()
	n := 0
	for i := range req.Topics {
		t := kmsg.NewOffsetCommitResponseTopic()
		t.Topic, t.TopicID = req.Topics[i].Topic, req.Topics[i].TopicID
		for j := range req.Topics[i].Partitions {
			err := r.Offsets[n].Err
			if n++; err == nil {
				err = all
			}
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.Partition, p.ErrorCode = req.Topics[i].Partitions[j].Partition, h.count(c, codeOf(err))
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}

// namedTopic is a topic's name in a request that names it either way.
func (h *Handler) namedTopic(name string, id [16]byte, byID bool) (string, error) {
	if !byID {
		return name, nil
	}
	if t := h.Image().ByID[store.UUID(id)]; t != nil {
		return t.Name, nil
	}
	return "", refuse(UnknownTopicID, "this server does not host this topic id")
}
