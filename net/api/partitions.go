package api

import (
	"errors"

	"platter/engine/commitlog"
	"platter/engine/store"
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

// topicName finds a topic's name by its id.
func (h *Handler) topicName(id store.UUID) (string, bool) {
	if t := h.Image().ByID[id]; t != nil {
		return t.Name, true
	}
	return h.Replicas.TopicName(id)
}
