package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group/core"
)

// LeaveGroup. Versions 0 to 5. Behaviour: one member up to version 2, whose error is the answer's; from 3
// on many, each with its own, and static members by their instance id alone (KIP-345). The reason
// (version 5, KIP-800) goes to the log.
func init() { register(kmsg.LeaveGroup, 0, 5, (*Handler).leaveGroup) }

func (h *Handler) leaveGroup(c call, req *kmsg.LeaveGroupRequest) (kmsg.Response, error) {
	members := req.Members
	if req.Version < 3 {
		members = []kmsg.LeaveGroupRequestMember{{MemberID: req.MemberID}}
	}
	leaving := make([]core.Leaving, len(members))
	for i, m := range members {
		leaving[i] = core.Leaving{MemberID: m.MemberID, InstanceID: m.InstanceID}
		if m.Reason != nil && *m.Reason != "" {
			h.Log.Debug("member leaves", "group", req.Group, "member", m.MemberID, "reason", *m.Reason)
		}
	}
	resp := kmsg.NewPtrLeaveGroupResponse()
	each, err := h.Groups.Leave(req.Group, leaving)
	if req.Version < 3 && err == nil {
		err = each[0]
	}
	resp.ErrorCode = h.count(c, codeOf(err))
	if req.Version < 3 || err != nil {
		return resp, nil
	}
	for i, m := range members {
		rm := kmsg.NewLeaveGroupResponseMember()
		rm.MemberID, rm.InstanceID, rm.ErrorCode = m.MemberID, m.InstanceID, h.count(c, codeOf(each[i]))
		resp.Members = append(resp.Members, rm)
	}
	return resp, nil
}
