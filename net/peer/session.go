package peer

import (
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/replication/follow"
	"platter/replication/replica"
)

// session is a follower's fetch session with one leader on one lane (KIP-227): the leader keeps what is wanted, so that
// a request names only what changed. It belongs to the lane's one caller.
type session struct {
	id    int32 // 0: none
	epoch int32 // of the next request
	sent  map[sentKey]sentPart
}

type sentKey struct {
	id        store.UUID
	partition int32
}

// sentPart is what the leader was told last; round says in which request the partition was wanted last.
type sentPart struct {
	tp    store.TP
	at    replica.Position
	bytes int32
	round int32
}

func (s *session) reset() { *s = session{} }

// request fills in what is to be asked for.
func (s *session) request(req *kmsg.FetchRequest, r *follow.Request) {
	if s.id == 0 {
		s.epoch, s.sent = 0, make(map[sentKey]sentPart, len(r.Partitions))
	}
	req.SessionID, req.SessionEpoch = s.id, s.epoch
	index := map[store.UUID]int{}
	for i := range r.Partitions {
		w := &r.Partitions[i]
		k := sentKey{w.TopicID, w.TP.Partition}
		now := sentPart{w.TP, w.At, w.MaxBytes, s.epoch}
		before, known := s.sent[k]
		s.sent[k] = now
		before.round = now.round
		if known && before == now {
			continue
		}
		at, ok := index[w.TopicID]
		if !ok {
			at = len(req.Topics)
			index[w.TopicID] = at
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = w.TP.Topic, w.TopicID
			req.Topics = append(req.Topics, t)
		}
		req.Topics[at].Partitions = append(req.Topics[at].Partitions, wantedOf(w))
	}
	if len(s.sent) > len(r.Partitions) {
		s.forget(req)
	}
}

func wantedOf(w *follow.Wanted) kmsg.FetchRequestTopicPartition {
	q := kmsg.NewFetchRequestTopicPartition()
	q.Partition, q.CurrentLeaderEpoch, q.FetchOffset = w.TP.Partition, w.At.LeaderEpoch, w.At.Offset
	q.LastFetchedEpoch, q.LogStartOffset, q.PartitionMaxBytes = w.At.LastEpoch, w.At.LogStart, w.MaxBytes
	return q
}

// forget names the partitions that are not wanted any more.
func (s *session) forget(req *kmsg.FetchRequest) {
	index := map[store.UUID]int{}
	for k, p := range s.sent {
		if p.round == s.epoch {
			continue
		}
		delete(s.sent, k)
		at, ok := index[k.id]
		if !ok {
			at = len(req.ForgottenTopics)
			index[k.id] = at
			t := kmsg.NewFetchRequestForgottenTopic()
			t.Topic, t.TopicID = p.tp.Topic, k.id
			req.ForgottenTopics = append(req.ForgottenTopics, t)
		}
		req.ForgottenTopics[at].Partitions = append(req.ForgottenTopics[at].Partitions, k.partition)
	}
}

// answered goes on to the next request.
func (s *session) answered(id int32) {
	if s.id = id; id == 0 {
		s.reset()
		return
	}
	if s.epoch == math.MaxInt32 {
		s.epoch = 0
	}
	s.epoch++
}
