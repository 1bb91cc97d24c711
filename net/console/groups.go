package console

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"platter/coord/group"
)

var (
	groupCount   = desc("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups that this broker coordinates.")
	groupOffsets = desc("kafka_coordinator_group_groupmetadatamanager_numoffsets", "Committed offsets of these groups.")
	groupMembers = desc("platter_group_members", "Members of these groups.")
	groupBytes   = desc("platter_group_memory_bytes", "What these groups take in memory, roughly.")
	groupLoading = desc("platter_group_loading_partitions", "Partitions of __consumer_offsets that are being read.")
)

// groupsIn is the gauge of a state.
func groupsIn(state string) *prometheus.Desc {
	return desc("kafka_coordinator_group_groupmetadatamanager_numgroups"+strings.ToLower(state), "Groups in state "+state+".")
}

// WatchGroups adds the gauges of the group coordinator. Called once.
func (m *Metrics) WatchGroups(stats func() group.Stats) {
	m.registry.MustRegister(groupCollector(stats))
}

// groupCollector asks the coordinator at each scrape.
type groupCollector func() group.Stats

// Describe sends what does not change; the states come with Collect.
func (c groupCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{groupCount, groupOffsets, groupMembers, groupBytes, groupLoading} {
		out <- d
	}
	for state := range c().States {
		out <- groupsIn(state.String())
	}
}

// Collect sends the values of this moment.
func (c groupCollector) Collect(out chan<- prometheus.Metric) {
	st, g := c(), gauge{out}
	g.set(groupCount, int64(st.Groups))
	g.set(groupOffsets, int64(st.Offsets))
	g.set(groupMembers, int64(st.Members))
	g.set(groupBytes, st.Bytes)
	g.set(groupLoading, int64(st.Loading))
	for state, n := range st.States {
		g.set(groupsIn(state.String()), int64(n))
	}
}
