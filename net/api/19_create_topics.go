package api

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/config"
	"platter/coord/controller"
)

// CreateTopics. Versions 2 to 7. Behaviour:
//   - the answer comes when the new topics' leaders serve, or after timeout.ms;
//   - a topic named twice in one request is INVALID_REQUEST;
//   - from version 5 on the answer tells the topic's size and all its settings, from 7 its id.
func init() { registerControlled(kmsg.CreateTopics, 2, 7, (*Handler).createTopics) }

// Waits that a client may ask of the controller.
const (
	adminWaitMin = 100 * time.Millisecond
	adminWaitMax = 10 * time.Minute
)

// adminContext bounds an administrative request by its own timeout. A broker that stops lets it come to its end, while
// it drains its connections: to break it off would leave the client not knowing what has become of it.
func adminContext(c call, timeoutMs int32) (context.Context, context.CancelFunc) {
	d := time.Duration(timeoutMs) * time.Millisecond
	return context.WithTimeout(c.Gone(), min(max(d, adminWaitMin), adminWaitMax))
}

func (h *Handler) createTopics(c call, req *kmsg.CreateTopicsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrCreateTopicsResponse()
	count := map[string]int{}
	for i := range req.Topics {
		count[req.Topics[i].Topic]++
	}
	var wanted []controller.NewTopic
	results := make(map[string]controller.Created, len(count))
	for i := range req.Topics {
		t := &req.Topics[i]
		if _, done := results[t.Topic]; done {
			continue
		}
		nt, err := newTopic(t, req.ValidateOnly)
		if count[t.Topic] > 1 {
			err = refuse(InvalidRequest, "topic is named twice in the request")
		}
		results[t.Topic] = controller.Created{Name: t.Topic, Err: err}
		if err == nil {
			wanted = append(wanted, nt)
		}
	}
	if len(wanted) > 0 {
		ctx, cancel := adminContext(c, req.TimeoutMillis)
		defer cancel()
		for _, r := range h.Controller.CreateTopics(ctx, wanted) {
			results[r.Name] = r
		}
	}
	for i := range req.Topics {
		r, ok := results[req.Topics[i].Topic]
		if !ok {
			continue // named twice: answered once
		}
		delete(results, r.Name)
		resp.Topics = append(resp.Topics, h.createdTopic(c, &req.Topics[i], r))
	}
	return resp, nil
}

// newTopic translates one topic of the request.
func newTopic(t *kmsg.CreateTopicsRequestTopic, validateOnly bool) (controller.NewTopic, error) {
	nt := controller.NewTopic{
		Name: t.Topic, PartitionCount: t.NumPartitions, ReplicationFactor: t.ReplicationFactor,
		ValidateOnly: validateOnly,
	}
	if len(t.Configs) > 0 {
		nt.Configs = make(map[string]*string, len(t.Configs))
	}
	for i := range t.Configs {
		if t.Configs[i].Value == nil {
			return nt, refuse(InvalidConfig, "null value not supported for topic configs: %s", t.Configs[i].Name)
		}
		nt.Configs[t.Configs[i].Name] = t.Configs[i].Value
	}
	if len(t.ReplicaAssignment) == 0 {
		return nt, nil
	}
	if t.NumPartitions != -1 || t.ReplicationFactor != -1 {
		return nt, refuse(InvalidRequest, "both numPartitions or replicationFactor and replicasAssignments were set")
	}
	nt.Assignment = make([][]int32, len(t.ReplicaAssignment))
	for _, a := range t.ReplicaAssignment {
		if a.Partition < 0 || int(a.Partition) >= len(nt.Assignment) || nt.Assignment[a.Partition] != nil {
			return nt, refuse(InvalidReplicaAssignment, "partitions must be numbered consecutively from 0")
		}
		if len(a.Replicas) == 0 {
			return nt, refuse(InvalidReplicaAssignment, "partition %d has no replica", a.Partition)
		}
		nt.Assignment[a.Partition] = a.Replicas
	}
	return nt, nil
}

func (h *Handler) createdTopic(c call, q *kmsg.CreateTopicsRequestTopic, r controller.Created) kmsg.CreateTopicsResponseTopic {
	t := kmsg.NewCreateTopicsResponseTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = r.Name, -1, -1
	t.ErrorCode, t.ErrorMessage = h.count(c, codeOf(r.Err)), textOf(r.Err)
	if r.Err != nil {
		return t
	}
	t.TopicID, t.NumPartitions, t.ReplicationFactor = r.ID, r.PartitionCount, r.ReplicationFactor
	if c.Version < 5 {
		return t
	}
	overrides := map[string]string{}
	for i := range q.Configs {
		overrides[q.Configs[i].Name] = *q.Configs[i].Value
	}
	defs := config.TopicDefs()
	t.Configs = make([]kmsg.CreateTopicsResponseTopicConfig, 0, len(defs))
	for _, d := range defs {
		value, source := h.Config.TopicValue(d.Name, overrides)
		tc := kmsg.NewCreateTopicsResponseTopicConfig()
		tc.Name, tc.Value, tc.Source = d.Name, &value, int8(source)
		if tc.IsSensitive = d.Type == config.Password; tc.IsSensitive {
			tc.Value = nil
		}
		t.Configs = append(t.Configs, tc)
	}
	slices.SortFunc(t.Configs, func(a, b kmsg.CreateTopicsResponseTopicConfig) int {
		return compare(a.Name, b.Name)
	})
	return t
}
