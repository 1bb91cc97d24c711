package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/peer"
)

// StopReplica, the controller's word that replicas end here. Versions 3 and 4, which name leader epochs.
// Fenced as LeaderAndIsr. A replica that is not here is no error; with delete its log goes.
func init() { register(kmsg.StopReplica, 3, 4, (*Handler).stopReplica) }

func (h *Handler) stopReplica(c call, req *kmsg.StopReplicaRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrStopReplicaResponse()
	r := peer.DecodeStopReplica(req)
	errs, err := h.Peer.StopReplica(c.ctx, r)
	resp.ErrorCode = h.count(c, codeOf(err))
	if err != nil {
		h.rejects.Warn("a controller's word was not taken", "controller", r.ControllerID, "epoch", r.ControllerEpoch, "err", err)
		return resp, nil
	}
	for i := range r.Partitions {
		q := kmsg.NewStopReplicaResponsePartition()
		q.Topic, q.Partition, q.ErrorCode = r.Partitions[i].TP.Topic, r.Partitions[i].TP.Partition, h.count(c, codeOf(errs[i]))
		resp.Partitions = append(resp.Partitions, q)
	}
	return resp, nil
}
