package api

import (
	"context"
	"net"

	"platter/coord/group"
	"platter/coord/group/core"
	"platter/engine/store"
)

// Groups is the group coordinator (*group.Coordinator).
type Groups interface {
	Leader(ctx context.Context, group string) (int32, error)
	Join(ctx context.Context, group string, r core.JoinRequest) core.JoinReply
	Sync(ctx context.Context, group string, r core.SyncRequest) core.SyncReply
	Heartbeat(group, member string, instance *string, generation int32) error
	Leave(group string, leaving []core.Leaving) ([]error, error)
	Commit(*group.CommitRequest) error
	Fetch(group string, tps []store.TP) ([]group.Committed, error)
	DeleteOffsets(group string, tps []store.TP) ([]error, error)
	Describe(group string) (core.Description, error)
	List() ([]group.Listed, error)
	DeleteGroups(groups []string) []error
}

// clientHost is a member's address as Kafka writes it (Java's InetAddress).
func clientHost(c call) string {
	host, _, err := net.SplitHostPort(c.Conn.Remote.String())
	if err != nil {
		host = c.Conn.Remote.String()
	}
	return "/" + host
}

// partition says whether the image has it.
func (h *Handler) hasPartition(topic string, partition int32) bool {
	t := h.Image().Topics[topic]
	return t != nil && partition >= 0 && int(partition) < len(t.Partitions)
}
