package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/controller"
)

// CreatePartitions. Versions 0 to 3. Behaviour:
//   - a count below or equal to the one there is INVALID_PARTITIONS, a topic named twice INVALID_REQUEST;
//   - the answer comes when the new partitions' leaders serve, or after timeout.ms;
//   - the topics that the broker keeps for itself are INVALID_TOPIC_EXCEPTION: a group's place, for one,
//     follows from the count of partitions. (Kafka's tool refuses that, its brokers do not.)
func init() { registerControlled(kmsg.CreatePartitions, 0, 3, (*Handler).createPartitions) }

func (h *Handler) createPartitions(c call, req *kmsg.CreatePartitionsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrCreatePartitionsResponse()
	count := map[string]int{}
	for i := range req.Topics {
		count[req.Topics[i].Topic]++
	}
	errs := map[string]error{}
	var wanted []controller.MorePartitions
	for i := range req.Topics {
		q := &req.Topics[i]
		switch {
		case count[q.Topic] > 1:
			errs[q.Topic] = refuse(InvalidRequest, "topic is named twice in the request")
		case isInternal(q.Topic):
			errs[q.Topic] = refuse(InvalidTopicException, "the number of partitions of %s cannot be changed", q.Topic)
		default:
			m := controller.MorePartitions{Topic: q.Topic, Count: q.Count, ValidateOnly: req.ValidateOnly}
			if q.Assignment != nil { // an empty one is one, and too short
				m.Assignment = make([][]int32, 0, len(q.Assignment))
			}
			for j := range q.Assignment {
				m.Assignment = append(m.Assignment, q.Assignment[j].Replicas)
			}
			wanted = append(wanted, m)
		}
	}
	if len(wanted) > 0 {
		ctx, cancel := adminContext(c, req.TimeoutMillis)
		defer cancel()
		for i, err := range h.Controller.CreatePartitions(ctx, wanted) {
			errs[wanted[i].Topic] = err
		}
	}
	for i := range req.Topics {
		name := req.Topics[i].Topic
		err, ok := errs[name]
		if !ok {
			continue // named twice: answered once
		}
		delete(errs, name)
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = name, h.count(c, codeOf(err)), textOf(err)
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}
