package peer

import (
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/replication/follow"
)

// session is a follower's fetch session with one leader on one lane (KIP-227): the leader keeps what is wanted, so that
// a request names only what changed. It belongs to the lane's one caller.
type session struct {
	id    int32 // 0: none
	epoch int32 // of the next request
	keys  []sentKey
	at    map[sentKey]int // places in the caller's requests
	given []follow.Given  // used again
	seen  []int32         // the request in which a place was answered last, from 1
	round int32
}

// sentKey is a partition that the leader was asked for.
type sentKey struct {
	id        store.UUID
	partition int32
}

// noKey is an empty place's.
var noKey = sentKey{partition: -1}

func keyOf(w *follow.Wanted) sentKey {
	if w.TP.Topic == "" {
		return noKey
	}
	return sentKey{w.TopicID, w.TP.Partition}
}

// reset makes the next request name everything.
func (s *session) reset() { s.id = 0 }

// request fills in what is to be asked for: with a session what has changed, else everything.
func (s *session) request(req *kmsg.FetchRequest, r *follow.Request) {
	if s.id == 0 {
		s.epoch, s.keys, s.at = 0, s.keys[:0], make(map[sentKey]int, len(r.Partitions))
	}
	for len(s.keys) < len(r.Partitions) {
		s.keys = append(s.keys, noKey)
	}
	req.SessionID, req.SessionEpoch = s.id, s.epoch
	a := asking{s: s, req: req}
	if s.id == 0 {
		for i := range r.Partitions {
			n := (r.Turn + i) % len(r.Partitions)
			a.ask(n, &r.Partitions[n])
		}
		return
	}
	// A partition may have changed its place: first they leave theirs.
	for _, n := range r.Changed {
		a.leave(n, &r.Partitions[n])
	}
	for _, n := range r.Changed {
		a.ask(n, &r.Partitions[n])
	}
	a.forget()
}

// asking is one request in the making.
type asking struct {
	s      *session
	req    *kmsg.FetchRequest
	topics map[store.UUID]int
	left   []sentKey
}

func (a *asking) leave(n int, w *follow.Wanted) {
	if was := a.s.keys[n]; was != noKey && was != keyOf(w) {
		delete(a.s.at, was)
		a.s.keys[n] = noKey
		a.left = append(a.left, was)
	}
}

func (a *asking) ask(n int, w *follow.Wanted) {
	k := keyOf(w)
	if k == noKey {
		return
	}
	a.s.keys[n], a.s.at[k] = k, n
	last := len(a.req.Topics) - 1
	if last < 0 || a.req.Topics[last].TopicID != k.id {
		if a.topics == nil {
			a.topics = map[store.UUID]int{}
		}
		var known bool
		if last, known = a.topics[k.id]; !known {
			last = len(a.req.Topics)
			a.topics[k.id] = last
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = w.TP.Topic, k.id
			a.req.Topics = append(a.req.Topics, t)
		}
	}
	a.req.Topics[last].Partitions = append(a.req.Topics[last].Partitions, wantedOf(w))
}

func wantedOf(w *follow.Wanted) kmsg.FetchRequestTopicPartition {
	q := kmsg.NewFetchRequestTopicPartition()
	q.Partition, q.CurrentLeaderEpoch, q.FetchOffset = w.TP.Partition, w.At.LeaderEpoch, w.At.Offset
	q.LastFetchedEpoch, q.LogStartOffset, q.PartitionMaxBytes = w.At.LastEpoch, w.At.LogStart, w.MaxBytes
	return q
}

// forget names the partitions that are not wanted any more.
func (a *asking) forget() {
	index := map[store.UUID]int{}
	for _, k := range a.left {
		if _, wanted := a.s.at[k]; wanted { // at another place
			continue
		}
		at, ok := index[k.id]
		if !ok {
			at = len(a.req.ForgottenTopics)
			index[k.id] = at
			t := kmsg.NewFetchRequestForgottenTopic()
			t.TopicID = k.id
			a.req.ForgottenTopics = append(a.req.ForgottenTopics, t)
		}
		a.req.ForgottenTopics[at].Partitions = append(a.req.ForgottenTopics[at].Partitions, k.partition)
	}
}

// answer gives what is new, by the places of the request. Of a session, what is not there is unchanged; a full fetch is
// answered in full.
func (s *session) answer(resp *kmsg.FetchResponse) ([]follow.Given, error) {
	s.given = s.given[:0]
	for len(s.seen) < len(s.keys) {
		s.seen = append(s.seen, 0)
	}
	if s.round == math.MaxInt32 {
		s.round = 0
		clear(s.seen)
	}
	s.round++
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			q := &t.Partitions[j]
			n, asked := s.at[sentKey{t.TopicID, q.Partition}]
			if !asked || s.seen[n] == s.round {
				return nil, fmt.Errorf("Fetch: an answer for partition %d of %x, which was not asked for, or twice", q.Partition, t.TopicID)
			}
			s.seen[n] = s.round
			g := givenOf(q)
			g.Place = n
			s.given = append(s.given, g)
		}
	}
	if s.id == 0 && len(s.given) < len(s.at) {
		return nil, fmt.Errorf("Fetch: %d answers for %d partitions", len(s.given), len(s.at))
	}
	return s.given, nil
}

// answered goes on to the next request.
func (s *session) answered(id int32) {
	if s.id = id; id == 0 {
		return
	}
	if s.epoch == math.MaxInt32 {
		s.epoch = 0
	}
	s.epoch++
}
