package client

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker is asked for the log ends of its replicas, whoever leads them, as replica -2 (a debugging consumer).
const (
	debuggingReplica = -2
	latest           = -1
)

type replicaKey struct {
	topic     string
	partition int32
}

// lagging are the replicas that are behind their leaders' log ends, and those that are not told of. A replica that
// is fetching right now may be behind by what came while it was asked.
func lagging(ctx context.Context, cl *kgo.Client, m kadm.Metadata) []lagView {
	ends := map[int32]map[replicaKey]int64{}
	for _, b := range m.Brokers {
		if asked := requestFor(m, b.NodeID); asked != nil {
			ends[b.NodeID] = endsOf(ctx, cl, b.NodeID, asked)
		}
	}
	out := []lagView{}
	for _, t := range m.Topics.Sorted() {
		for _, p := range t.Partitions.Sorted() {
			k := replicaKey{t.Topic, p.Partition}
			end, led := ends[p.Leader][k]
			for _, id := range p.Replicas {
				own, told := ends[id][k]
				l := lagView{t.Topic, p.Partition, id, end - own, slices.Contains(p.ISR, id)}
				if !told || !led {
					l.Lag = -1
				}
				if l.Lag != 0 && (l.Lag < 0 || id != p.Leader) {
					out = append(out, l)
				}
			}
		}
	}
	return out
}

// requestFor asks for all replicas of a broker; nil: it has none.
func requestFor(m kadm.Metadata, broker int32) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = debuggingReplica
	for _, t := range m.Topics.Sorted() {
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions.Sorted() {
			if slices.Contains(p.Replicas, broker) {
				rp := kmsg.NewListOffsetsRequestTopicPartition()
				rp.Partition, rp.Timestamp = p.Partition, latest
				rt.Partitions = append(rt.Partitions, rp)
			}
		}
		if len(rt.Partitions) > 0 {
			req.Topics = append(req.Topics, rt)
		}
	}
	if len(req.Topics) == 0 {
		return nil
	}
	return req
}

// endsOf are the log ends of a broker's replicas, as far as it tells.
func endsOf(ctx context.Context, cl *kgo.Client, broker int32, req *kmsg.ListOffsetsRequest) map[replicaKey]int64 {
	out := map[replicaKey]int64{}
	answer, err := cl.Broker(int(broker)).Request(ctx, req)
	if err != nil {
		return out
	}
	for _, t := range answer.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				out[replicaKey{t.Topic, p.Partition}] = p.Offset
			}
		}
	}
	return out
}
