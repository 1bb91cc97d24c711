package peer

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/replication/follow"
)

const (
	fetchVersion       = 17
	listOffsetsVersion = 7
	// timestampEarliest asks ListOffsets for the log start (ListOffsetsRequest.EARLIEST_TIMESTAMP).
	timestampEarliest = -2
)

// Leaders is how followers here fetch. Make it with NewLeaders.
type Leaders struct {
	*Pool
	sessions *sync.Map // *session, by laneKey
}

// NewLeaders makes the way to the leaders.
func NewLeaders(p *Pool) Leaders { return Leaders{p, &sync.Map{}} }

var _ follow.Leaders = Leaders{}

const fetchPrefix = "fetch-"

func fetchLane(n int) string { return fetchPrefix + strconv.Itoa(n) }

// The leader does not know the session as this broker does: it starts over.
const (
	sessionNotFound     = 70
	sessionEpochInvalid = 71
	sessionTopicID      = 106
)

// Fetch implements follow.Leaders.
func (p Leaders) Fetch(ctx context.Context, leader int32, n int, r *follow.Request) ([]follow.Given, error) {
	found, ok := p.sessions.Load(laneKey{broker: leader, name: fetchLane(n)})
	if !ok {
		found, _ = p.sessions.LoadOrStore(laneKey{broker: leader, name: fetchLane(n)}, &session{})
	}
	s := found.(*session)
	to, err := p.broker(leader)
	if err != nil {
		s.reset()
		return nil, err
	}
	for {
		resp, err := p.fetch(ctx, to, n, s, r)
		if err != nil {
			s.reset()
			return nil, err
		}
		switch incremental := s.id != 0; {
		case incremental && (resp.ErrorCode == sessionNotFound || resp.ErrorCode == sessionEpochInvalid || resp.ErrorCode == sessionTopicID):
			s.reset()
			continue
		case resp.ErrorCode != 0:
			s.reset()
			return nil, &Unreachable{leader, errorOf(resp.ErrorCode)}
		default:
			given, err := s.answer(resp)
			if err != nil {
				s.reset()
				return nil, &Unreachable{leader, err}
			}
			s.answered(resp.SessionID)
			return given, nil
		}
	}
}

func (p Leaders) fetch(ctx context.Context, to cluster.Broker, n int, s *session, r *follow.Request) (*kmsg.FetchResponse, error) {
	req := kmsg.NewPtrFetchRequest()
	req.Version = fetchVersion
	req.ReplicaState.ID, req.ReplicaState.Epoch = p.cfg.BrokerID, p.cfg.Epoch()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = r.MaxWaitMs, r.MinBytes, r.MaxBytes
	s.request(req, r)
	answer, err := p.do(ctx, to, fetchLane(n), req)
	if err != nil {
		return nil, err
	}
	return answer.(*kmsg.FetchResponse), nil
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
	p.sessions.Delete(laneKey{broker: leader, name: fetchLane(n)})
	p.hangUp(laneKey{broker: leader, name: fetchLane(n)})
	p.hangUp(laneKey{broker: leader, name: fetchLane(n) + "-offsets"})
}
