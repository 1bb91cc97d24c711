package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group/core"
)

// DescribeGroups. Versions 0 to 6. Behaviour:
//   - a group that does not exist is Dead, and no error; from version 6 on it is GROUP_ID_NOT_FOUND
//     (KIP-1043);
//   - a group that is named twice is answered once: it may be large;
//   - protocol, metadata and assignments are shown of Stable groups only;
//   - authorized operations (version 3 and later) are all that a group has, when they were asked for.
func init() { register(kmsg.DescribeGroups, 0, 6, (*Handler).describeGroups) }

// groupOperations are read, delete and describe, by AclOperation code.
const groupOperations = 1<<3 | 1<<6 | 1<<8

func (h *Handler) describeGroups(c call, req *kmsg.DescribeGroupsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	seen := map[string]bool{}
	for _, id := range req.Groups {
		if seen[id] {
			continue
		}
		seen[id] = true
		g := kmsg.NewDescribeGroupsResponseGroup()
		g.Group = id
		d, err := h.Groups.Describe(id)
		switch {
		case errors.Is(err, core.ErrNoGroup):
			g.State = core.Dead.String()
			if req.Version >= 6 {
				g.ErrorMessage = kmsg.StringPtr("group " + id + " not found")
			} else {
				err = nil
			}
		case err != nil:
			if req.Version >= 6 {
				g.ErrorMessage = textOf(err)
			}
		default:
			g.State, g.ProtocolType, g.Protocol = d.State.String(), d.ProtocolType, d.Protocol
			for _, m := range d.Members {
				rm := kmsg.NewDescribeGroupsResponseGroupMember()
				rm.MemberID, rm.InstanceID, rm.ClientID, rm.ClientHost = m.ID, m.InstanceID, m.ClientID, m.ClientHost
				rm.ProtocolMetadata, rm.MemberAssignment = m.Metadata, m.Assignment
				g.Members = append(g.Members, rm)
			}
		}
		g.ErrorCode = h.count(c, codeOf(err))
		if err == nil {
			g.AuthorizedOperations = operations(req.IncludeAuthorizedOperations, groupOperations)
		}
		resp.Groups = append(resp.Groups, g)
	}
	return resp, nil
}
