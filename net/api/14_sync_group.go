package api

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group/core"
)

// SyncGroup. Versions 0 to 5. Behaviour: the answer comes when the leader's assignment is stored. From version
// 5 on the member must name protocol type and protocol, which must be the group's (KIP-559).
func init() { register(kmsg.SyncGroup, 0, 5, (*Handler).syncGroup) }

func (h *Handler) syncGroup(c call, req *kmsg.SyncGroupRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.MemberAssignment = []byte{}
	if req.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		resp.ErrorCode = h.count(c, InconsistentGroupProtocol)
		return resp, nil
	}
	r := core.SyncRequest{
		MemberID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation,
		ProtocolType: req.ProtocolType, Protocol: req.Protocol,
		Assignments: make(map[string][]byte, len(req.GroupAssignment)),
	}
	for _, a := range req.GroupAssignment {
		r.Assignments[a.MemberID] = bytes.Clone(a.MemberAssignment)
	}
	reply := h.Groups.Sync(c.ctx, req.Group, r)
	resp.ErrorCode = h.count(c, codeOf(reply.Err))
	if reply.Err == nil {
		resp.ProtocolType, resp.Protocol = &reply.ProtocolType, &reply.Protocol
		resp.MemberAssignment = reply.Assignment
	}
	return resp, nil
}
