package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteGroups. Versions 0 to 3. Behaviour: groups without members are deleted, with their offsets, and
// the answer comes when that is stored; others are NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND. From version 3 on
// the answer says why in words.
func init() { register(kmsg.DeleteGroups, 0, 3, (*Handler).deleteGroups) }

func (h *Handler) deleteGroups(c call, req *kmsg.DeleteGroupsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDeleteGroupsResponse()
	slices.Sort(req.Groups)
	groups := slices.Compact(req.Groups)
	for i, err := range h.Groups.DeleteGroups(groups) {
		g := kmsg.NewDeleteGroupsResponseGroup()
		g.Group, g.ErrorCode, g.ErrorMessage = groups[i], h.count(c, codeOf(err)), textOf(err)
		resp.Groups = append(resp.Groups, g)
	}
	return resp, nil
}
