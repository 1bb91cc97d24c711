package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
)

// DescribeTopicPartitions (KIP-966). Version 0. Behaviour: topics in name order, at most
// max.request.partition.size.limit in an answer, with a cursor to where the next one starts; an empty list
// means all topics. There are no eligible leader replicas: both lists are empty.
func init() { register(kmsg.DescribeTopicPartitions, 0, 0, (*Handler).describeTopicPartitions) }

func (h *Handler) describeTopicPartitions(c call, req *kmsg.DescribeTopicPartitionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	img := h.Image()
	var names []string
	for i := range req.Topics {
		names = append(names, req.Topics[i].Topic)
	}
	if len(names) == 0 {
		for name := range img.Topics {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	left, most := int(req.ResponsePartitionLimit), h.Config.Int("max.request.partition.size.limit")
	if left <= 0 || left > most {
		left = most
	}
	for _, name := range names {
		from := 0
		if cur := req.Cursor; cur != nil {
			if name < cur.Topic {
				continue
			}
			if name == cur.Topic {
				from = max(int(cur.Partition), 0)
			}
		}
		if left == 0 {
			resp.NextCursor = cursorAt(name, from)
			break
		}
		t, taken, whole := h.describePartitions(img, name, from, left)
		t.ErrorCode = h.count(c, Code(t.ErrorCode))
		resp.Topics = append(resp.Topics, t)
		left -= taken
		if !whole {
			resp.NextCursor = cursorAt(name, from+taken)
			break
		}
	}
	return resp, nil
}

func cursorAt(topic string, partition int) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	cur := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	cur.Topic, cur.Partition = topic, int32(partition)
	return &cur
}

// describePartitions describes up to limit partitions of a topic; whole says that none is left.
func (h *Handler) describePartitions(img *cluster.Image, name string, from, limit int) (rt kmsg.DescribeTopicPartitionsResponseTopic, taken int, whole bool) {
	rt = kmsg.NewDescribeTopicPartitionsResponseTopic()
	rt.Topic, rt.IsInternal, rt.AuthorizedOperations = &name, isInternal(name), topicOperations
	t := img.Topics[name]
	if t == nil {
		rt.ErrorCode, rt.AuthorizedOperations = int16(UnknownTopicOrPartition), notAsked
		if !validTopicName(name) {
			rt.ErrorCode = int16(InvalidTopicException)
		}
		return rt, 0, true
	}
	rt.TopicID = t.ID
	end := min(len(t.Partitions), from+limit)
	for i := from; i < end; i++ {
		p := &t.Partitions[i]
		rp := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		rp.Partition, rp.LeaderID, rp.LeaderEpoch = int32(i), p.Leader, p.LeaderEpoch
		rp.Replicas, rp.ISR, rp.OfflineReplicas = p.Replicas, p.ISR, offlineReplicas(img, p)
		// Not null, which Java's admin client cannot take: there are no eligible leader replicas (KIP-966) here.
		rp.EligibleLeaderReplicas, rp.LastKnownELR = []int32{}, []int32{}
		if p.Leader < 0 || !isAlive(img, p.Leader) {
			rp.LeaderID, rp.ErrorCode = -1, int16(LeaderNotAvailable)
		}
		rt.Partitions = append(rt.Partitions, rp)
	}
	return rt, max(end-from, 0), end >= len(t.Partitions)
}
