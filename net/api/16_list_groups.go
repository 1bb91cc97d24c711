package api

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group"
)

// ListGroups. Versions 0 to 5. Behaviour: the groups that this broker coordinates; from version 4 on by
// state (KIP-518), from 5 on by type (KIP-848), in any case of letters; names that are unknown match
// nothing. While some groups are loading, the others come with COORDINATOR_LOAD_IN_PROGRESS.
func init() { register(kmsg.ListGroups, 0, 5, (*Handler).listGroups) }

// classicGroup is the type of all groups, until the newer protocols are served.
const classicGroup = "classic"

func (h *Handler) listGroups(c call, req *kmsg.ListGroupsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrListGroupsResponse()
	all, err := h.Groups.List()
	resp.ErrorCode = h.count(c, codeOf(err))
	if !matches(req.TypesFilter, classicGroup) {
		return resp, nil
	}
	slices.SortFunc(all, func(a, b group.Listed) int { return compare(a.Group, b.Group) })
	for _, g := range all {
		if !matches(req.StatesFilter, g.State.String()) {
			continue
		}
		rg := kmsg.NewListGroupsResponseGroup()
		rg.Group, rg.ProtocolType, rg.GroupState, rg.GroupType = g.Group, g.ProtocolType, g.State.String(), classicGroup
		resp.Groups = append(resp.Groups, rg)
	}
	return resp, nil
}

// matches says whether a filter lets a name pass; an empty one lets all.
func matches(filter []string, name string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, name) })
}
