package api

import "github.com/twmb/franz-go/pkg/kmsg"

// Heartbeat. Versions 0 to 4. Behaviour: REBALANCE_IN_PROGRESS tells a member, which is taken to be
// alive, to join again.
func init() { register(kmsg.Heartbeat, 0, 4, (*Handler).heartbeat) }

func (h *Handler) heartbeat(c call, req *kmsg.HeartbeatRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrHeartbeatResponse()
	err := h.Groups.Heartbeat(req.Group, req.MemberID, req.InstanceID, req.Generation)
	resp.ErrorCode = h.count(c, codeOf(err))
	return resp, nil
}
