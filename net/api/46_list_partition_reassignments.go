package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListPartitionReassignments (KIP-455). Version 0. Behaviour: the controller's picture, which another tool
// may have put into the topics' znodes; null topics mean all, and a partition that is not being moved is
// left out, whether it exists or not.
func init() { registerControlled(kmsg.ListPartitionReassignments, 0, 0, (*Handler).listReassignments) }

func (h *Handler) listReassignments(c call, req *kmsg.ListPartitionReassignmentsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrListPartitionReassignmentsResponse()
	ctx, cancel := adminContext(c, req.TimeoutMillis)
	defer cancel()
	moving, err := h.Controller.Reassignments(ctx)
	resp.ErrorCode, resp.ErrorMessage = h.count(c, codeOf(err)), textOf(err)
	for _, m := range moving {
		named := slices.ContainsFunc(req.Topics, func(q kmsg.ListPartitionReassignmentsRequestTopic) bool {
			return q.Topic == m.TP.Topic && slices.Contains(q.Partitions, m.TP.Partition)
		})
		if req.Topics != nil && !named {
			continue
		}
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != m.TP.Topic {
			t := kmsg.NewListPartitionReassignmentsResponseTopic()
			t.Topic = m.TP.Topic
			resp.Topics = append(resp.Topics, t)
		}
		p := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
		p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas = m.TP.Partition, m.Replicas, m.Adding, m.Removing
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return resp, nil
}
