package api

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group/core"
)

// JoinGroup. Versions 0 to 9. Behaviour:
//   - the answer comes when the rebalance is over;
//   - version 0 knows one timeout, which counts for session and rebalance;
//   - from version 4 on a new dynamic member gets its id by MEMBER_ID_REQUIRED, and joins again (KIP-394);
//   - from version 5 on members may be static (KIP-345), from 9 on a static leader that comes back to a
//     stable group is told to leave the assignment alone (KIP-814);
//   - the reason (version 8, KIP-800) goes to the log.
func init() { register(kmsg.JoinGroup, 0, 9, (*Handler).joinGroup) }

func (h *Handler) joinGroup(c call, req *kmsg.JoinGroupRequest) (kmsg.Response, error) {
	r := core.JoinRequest{
		MemberID: req.MemberID, InstanceID: req.InstanceID,
		IDRequired: req.Version >= 4, SkipsAssignment: req.Version >= 9,
		ClientID: string(c.ClientID), ClientHost: clientHost(c),
		RebalanceTimeoutMs: req.RebalanceTimeoutMillis, SessionTimeoutMs: req.SessionTimeoutMillis,
		ProtocolType: req.ProtocolType, Protocols: make([]core.Protocol, len(req.Protocols)),
	}
	if req.Version == 0 {
		r.RebalanceTimeoutMs = req.SessionTimeoutMillis
	}
	for i, p := range req.Protocols {
		r.Protocols[i] = core.Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)}
	}
	reply := h.Groups.Join(c.ctx, req.Group, r)
	if req.Reason != nil && *req.Reason != "" {
		h.Log.Debug("member joins", "group", req.Group, "member", reply.MemberID, "reason", *req.Reason)
	}
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, resp.Generation, resp.MemberID = h.count(c, codeOf(reply.Err)), reply.Generation, reply.MemberID
	if reply.Err != nil {
		return resp, nil
	}
	resp.ProtocolType, resp.Protocol, resp.LeaderID = &reply.ProtocolType, &reply.Protocol, reply.Leader
	resp.SkipAssignment = reply.SkipAssignment
	for _, m := range reply.Members {
		rm := kmsg.NewJoinGroupResponseMember()
		rm.MemberID, rm.InstanceID, rm.ProtocolMetadata = m.ID, m.InstanceID, m.Metadata
		resp.Members = append(resp.Members, rm)
	}
	return resp, nil
}
