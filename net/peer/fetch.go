package peer

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/replication/follow"
)

const (
	fetchVersion       = 17
	listOffsetsVersion = 7
	// timestampEarliest asks ListOffsets for the log start (ListOffsetsRequest.EARLIEST_TIMESTAMP).
	timestampEarliest = -2
)

// Leaders is how followers here fetch.
type Leaders struct{ *Pool }

var _ follow.Leaders = Leaders{}

func fetchLane(n int) string { return "fetch-" + strconv.Itoa(n) }

// Fetch implements follow.Leaders.
func (p Leaders) Fetch(ctx context.Context, leader int32, n int, r *follow.Request) ([]follow.Given, error) {
	to, err := p.broker(leader)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrFetchRequest()
	req.Version = fetchVersion
	req.ReplicaState.ID, req.ReplicaState.Epoch = p.cfg.BrokerID, p.cfg.Epoch()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = r.MaxWaitMs, r.MinBytes, r.MaxBytes
	req.SessionEpoch = -1
	index := map[store.UUID]int{}
	type place struct{ topic, at int }
	places := make([]place, len(r.Partitions))
	for i := range r.Partitions {
		w := &r.Partitions[i]
		k, ok := index[w.TopicID]
		if !ok {
			k = len(req.Topics)
			index[w.TopicID] = k
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = w.TP.Topic, w.TopicID
			req.Topics = append(req.Topics, t)
		}
		q := kmsg.NewFetchRequestTopicPartition()
		q.Partition, q.CurrentLeaderEpoch, q.FetchOffset = w.TP.Partition, w.At.LeaderEpoch, w.At.Offset
		q.LastFetchedEpoch, q.LogStartOffset, q.PartitionMaxBytes = w.At.LastEpoch, w.At.LogStart, w.MaxBytes
		places[i] = place{k, len(req.Topics[k].Partitions)}
		req.Topics[k].Partitions = append(req.Topics[k].Partitions, q)
	}
	answer, err := p.do(ctx, to, fetchLane(n), req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := errorOf(resp.ErrorCode); err != nil {
		return nil, &Unreachable{leader, err}
	}
	given := make([]follow.Given, len(r.Partitions))
	for i, at := range places {
		if at.topic >= len(resp.Topics) || at.at >= len(resp.Topics[at.topic].Partitions) ||
			resp.Topics[at.topic].Partitions[at.at].Partition != r.Partitions[i].TP.Partition {
			return nil, &Unreachable{leader, fmt.Errorf("Fetch: no answer for %s", r.Partitions[i].TP)}
		}
		given[i] = givenOf(&resp.Topics[at.topic].Partitions[at.at])
	}
	return given, nil
}

func givenOf(q *kmsg.FetchResponseTopicPartition) follow.Given {
	g := follow.Given{Err: errorOf(q.ErrorCode), HighWatermark: q.HighWatermark, LogStart: q.LogStartOffset, Records: q.RecordBatches}
	if d := q.DivergingEpoch; d.EndOffset >= 0 {
		g.Diverges, g.Epoch, g.EndOffset = true, d.Epoch, d.EndOffset
	}
	return g
}

// LogStart implements follow.Leaders.
func (p Leaders) LogStart(ctx context.Context, leader int32, n int, w follow.Wanted) (int64, error) {
	to, err := p.broker(leader)
	if err != nil {
		return 0, err
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = listOffsetsVersion, p.cfg.BrokerID
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = w.TP.Topic
	q := kmsg.NewListOffsetsRequestTopicPartition()
	q.Partition, q.CurrentLeaderEpoch, q.Timestamp = w.TP.Partition, w.At.LeaderEpoch, timestampEarliest
	t.Partitions = append(t.Partitions, q)
	req.Topics = append(req.Topics, t)
	answer, err := p.do(ctx, to, fetchLane(n)+"-offsets", req)
	if err != nil {
		return 0, err
	}
	for _, t := range answer.(*kmsg.ListOffsetsResponse).Topics {
		for _, q := range t.Partitions {
			return q.Offset, errorOf(q.ErrorCode)
		}
	}
	return 0, &Unreachable{leader, fmt.Errorf("ListOffsets: no answer for %s", w.TP)}
}

// HangUp implements follow.Leaders.
func (p Leaders) HangUp(leader int32, n int) {
	p.hangUp(laneKey{leader, fetchLane(n)})
	p.hangUp(laneKey{leader, fetchLane(n) + "-offsets"})
}
