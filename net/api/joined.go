package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// early are the requests that are answered before the controller has told this broker of the cluster: those by which
// it tells, and what any connection begins with.
var early = map[int16]bool{
	int16(kmsg.ApiVersions): true, int16(kmsg.LeaderAndISR): true, int16(kmsg.StopReplica): true,
	int16(kmsg.UpdateMetadata): true, int16(kmsg.ControlledShutdown): true, int16(kmsg.AlterPartition): true,
}

// Joined lets requests be answered that know the cluster. A broker that registers is sent clients at once, while its
// own picture of the cluster is empty yet: until the controller has drawn it, clients wait rather than hear of a
// cluster without brokers and topics.
func (h *Handler) Joined() { h.joinOnce.Do(func() { close(h.joined) }) }

// awaitJoined waits for Joined, or ctx.
func (h *Handler) awaitJoined(ctx context.Context) {
	select {
	case <-h.joined:
		return
	default:
	}
	select {
	case <-h.joined:
	case <-ctx.Done():
	}
}
