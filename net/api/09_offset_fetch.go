package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/group"
	"platter/engine/store"
)

// OffsetFetch. Versions 1 to 10. Behaviour:
//   - a partition without an offset has offset -1, and no error;
//   - from version 2 on null topics ask for all, and an error of the group is told for the whole, up to version 7 with
//     each partition as well. Kafka leaves the partitions out then; but a client that looks only there (aiokafka 0.14)
//     takes that for a group without offsets, and begins anew. From 8 on many groups are asked for at once, each with
//     its error (KIP-709), and one that is named twice is answered once;
//   - stable offsets (version 7) are all there are, until there are transactions;
//   - version 10 names topics by id: an unknown one is UNKNOWN_TOPIC_ID.
func init() { register(kmsg.OffsetFetch, 1, 10, (*Handler).offsetFetch) }

func (h *Handler) offsetFetch(c call, req *kmsg.OffsetFetchRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrOffsetFetchResponse()
	if req.Version >= 8 {
		seen := map[string]bool{}
		for i := range req.Groups {
			if seen[req.Groups[i].Group] {
				continue
			}
			seen[req.Groups[i].Group] = true
			g := h.fetchGroup(c, &req.Groups[i], req.Version)
			if g.ErrorCode != 0 {
				g.Topics = nil
			}
			resp.Groups = append(resp.Groups, g)
		}
		return resp, nil
	}
	q := kmsg.NewOffsetFetchRequestGroup()
	q.Group = req.Group
	if req.Topics != nil {
		q.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range req.Topics {
		qt := kmsg.NewOffsetFetchRequestGroupTopic()
		qt.Topic, qt.Partitions = t.Topic, t.Partitions
		q.Topics = append(q.Topics, qt)
	}
	g := h.fetchGroup(c, &q, req.Version)
	if req.Version >= 2 {
		resp.ErrorCode = g.ErrorCode
	}
	for i := range g.Topics {
		t := kmsg.NewOffsetFetchResponseTopic()
		t.Topic = g.Topics[i].Topic
		for _, p := range g.Topics[i].Partitions {
			tp := kmsg.NewOffsetFetchResponseTopicPartition()
			tp.Partition, tp.Offset, tp.LeaderEpoch, tp.Metadata, tp.ErrorCode = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode
			t.Partitions = append(t.Partitions, tp)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}

// fetchGroup answers for one group. Its error stands with each partition too.
func (h *Handler) fetchGroup(c call, q *kmsg.OffsetFetchRequestGroup, version int16) kmsg.OffsetFetchResponseGroup {
	g := kmsg.NewOffsetFetchResponseGroup()
	g.Group = q.Group
	if q.Topics == nil {
		all, err := h.Groups.Fetch(q.Group, nil)
		g.ErrorCode = h.count(c, codeOf(err))
		g.Topics = h.byTopic(all, version)
		return g
	}
	tps := []store.TP{}
	for i := range q.Topics {
		t := &q.Topics[i]
		rt := kmsg.NewOffsetFetchResponseGroupTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		name, unknown := h.namedTopic(t.Topic, t.TopicID, version >= 10)
		for _, p := range t.Partitions {
			rt.Partitions = append(rt.Partitions, fetchedOffset(group.Committed{TP: store.TP{Partition: p}, Offset: group.NoOffset}))
			rt.Partitions[len(rt.Partitions)-1].ErrorCode = h.count(c, codeOf(unknown))
			tps = append(tps, store.TP{Topic: name, Partition: p})
		}
		g.Topics = append(g.Topics, rt)
	}
	offsets, err := h.Groups.Fetch(q.Group, tps)
	g.ErrorCode = h.count(c, codeOf(err))
	n := 0
	for i := range g.Topics {
		for j := range g.Topics[i].Partitions {
			p := &g.Topics[i].Partitions[j]
			switch {
			case err != nil:
				p.ErrorCode = g.ErrorCode
			case p.ErrorCode == 0:
				*p = fetchedOffset(offsets[n])
			}
			n++
		}
	}
	return g
}

// byTopic groups all offsets of a group by topic, in order. One whose topic has no id any more cannot be
// named in version 10, and is left out.
func (h *Handler) byTopic(all []group.Committed, version int16) []kmsg.OffsetFetchResponseGroupTopic {
	slices.SortFunc(all, func(a, b group.Committed) int {
		if n := compare(a.TP.Topic, b.TP.Topic); n != 0 {
			return n
		}
		return int(a.TP.Partition) - int(b.TP.Partition)
	})
	var out []kmsg.OffsetFetchResponseGroupTopic
	img := h.Image()
	for i := range all {
		name := all[i].TP.Topic
		if i == 0 || all[i-1].TP.Topic != name {
			t := kmsg.NewOffsetFetchResponseGroupTopic()
			t.Topic = name
			if known := img.Topics[name]; known != nil {
				t.TopicID = known.ID
			}
			out = append(out, t)
		}
		t := &out[len(out)-1]
		t.Partitions = append(t.Partitions, fetchedOffset(all[i]))
	}
	if version >= 10 {
		out = slices.DeleteFunc(out, func(t kmsg.OffsetFetchResponseGroupTopic) bool { return t.TopicID == [16]byte{} })
	}
	return out
}

func fetchedOffset(o group.Committed) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = o.TP.Partition, o.Offset.Offset, o.LeaderEpoch, &o.Metadata
	return p
}
