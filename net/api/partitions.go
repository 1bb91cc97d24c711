package api

import (
	"errors"
	"slices"

	"platter/coord/cluster"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/net/wire"
	"platter/replication/replica"
)

type timeMatch = commitlog.TimeMatch

// leader finds this broker's replica. What exists but lies elsewhere is NOT_LEADER_OR_FOLLOWER: the
// client's metadata is old.
func (h *Handler) leader(tp store.TP) (Partition, error) {
	p, err := h.Replicas.Replica(tp)
	if errors.Is(err, replica.ErrUnknownPartition) {
		if t := h.Image().Topics[tp.Topic]; t != nil && tp.Partition >= 0 && int(tp.Partition) < len(t.Partitions) {
			return nil, replica.ErrNotLeader
		}
	}
	return p, err
}

// errTopicID: the topic was never here, or is gone.
var errTopicID = refuse(UnknownTopicID, "this server does not host this topic id")

// leaderByID is leader for a topic that was named by its id (zero: by its name): whatever has its name by now is
// not it.
func (h *Handler) leaderByID(tp store.TP, id store.UUID) (Partition, error) {
	p, err := h.leader(tp)
	if err != nil || id == (store.UUID{}) {
		return p, err
	}
	if st, _ := p.State(-1); st.TopicID != id {
		return nil, errTopicID
	}
	return p, nil
}

// topicName finds a topic's name by its id.
func (h *Handler) topicName(id store.UUID) (string, bool) {
	if t := h.Image().ByID[id]; t != nil {
		return t.Name, true
	}
	return h.Replicas.TopicName(id)
}

// hint is what a client that came to the wrong broker, or with an old epoch, is told (KIP-951).
func (h *Handler) hint(code Code, topic string, partition int32) wire.LeaderHint {
	if code != NotLeaderOrFollower && code != FencedLeaderEpoch {
		return wire.LeaderHint{}
	}
	t := h.Image().Topics[topic]
	if t == nil || partition < 0 || int(partition) >= len(t.Partitions) {
		return wire.LeaderHint{}
	}
	p := &t.Partitions[partition]
	return wire.LeaderHint{Known: true, ID: p.Leader, Epoch: p.LeaderEpoch}
}

// withEndpoint appends a broker's endpoint unless it is there, or has none on the listener.
func withEndpoint(list []wire.Endpoint, img *cluster.Image, id int32, listener string) []wire.Endpoint {
	b, ok := img.Broker(id)
	if !ok || slices.ContainsFunc(list, func(e wire.Endpoint) bool { return e.ID == id }) {
		return list
	}
	if e, ok := b.Endpoint(listener); ok {
		list = append(list, wire.Endpoint{ID: id, Host: e.Host, Port: e.Port, Rack: b.Rack})
	}
	return list
}
