package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteGroups. Versions 0 to 2. Behaviour: groups without members are deleted, with their offsets, and
// the answer comes when that is stored; others are NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND.
func init() { register(kmsg.DeleteGroups, 0, 2, (*Handler).deleteGroups) }

func (h *Handler) deleteGroups(c call, req *kmsg.DeleteGroupsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDeleteGroupsResponse()
	slices.Sort(req.Groups)
	groups := slices.Compact(req.Groups)
	for i, err := range h.Groups.DeleteGroups(groups) {
		g := kmsg.NewDeleteGroupsResponseGroup()
		g.Group, g.ErrorCode = groups[i], h.count(c, codeOf(err))
		resp.Groups = append(resp.Groups, g)
	}
	return resp, nil
}
