package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/peer"
)

// UpdateMetadata, the controller's picture of the cluster. Versions 7 and 8, which name topics' ids. Fenced as
// LeaderAndIsr. Type full (a tagged field of version 8): topics that are not named are gone.
func init() { register(kmsg.UpdateMetadata, 7, 8, (*Handler).updateMetadata) }

func (h *Handler) updateMetadata(c call, req *kmsg.UpdateMetadataRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrUpdateMetadataResponse()
	r := peer.DecodeUpdateMetadata(req)
	err := h.Peer.UpdateMetadata(c.ctx, r)
	resp.ErrorCode = h.count(c, codeOf(err))
	if err != nil {
		h.rejects.Warn("a controller's word was not taken", "controller", r.ControllerID, "epoch", r.ControllerEpoch, "err", err)
	}
	return resp, nil
}
