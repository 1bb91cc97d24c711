package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/replication/replica"
)

// ListOffsets. Versions 1 to 11. Behaviour:
//   - by time: the first record at or after it that a consumer may see; when there is none, offset -1
//     and timestamp -1 without an error, and never a missing partition;
//   - latest is the high watermark, or the last stable offset for read committed;
//   - there is no tiered storage: earliest local is the log start, and what asks for the remote part
//     gets offset -1;
//   - a broker that asks (replica id) is told the log's end as latest; replica id -2 (a debugging consumer) is answered
//     by followers too, so that replicas can be compared;
//   - a new leader whose high watermark has not reached the begin of its term tells a consumer no end below it, which
//     could be lower than one it was told before: OFFSET_NOT_AVAILABLE, before version 5 LEADER_NOT_AVAILABLE
//     (KIP-207);
//   - a partition that is named twice is INVALID_REQUEST, as in Kafka.
func init() { register(kmsg.ListOffsets, 1, 11, (*Handler).listOffsets) }

// Timestamps that are questions of their own, and the version each came with.
const (
	askLatest          = -1
	askEarliest        = -2
	askMaxTimestamp    = -3 // version 7 (KIP-734)
	askEarliestLocal   = -4 // version 8 (KIP-405)
	askLatestTiered    = -5 // version 9 (KIP-1005)
	askEarliestPending = -6 // version 11 (KIP-1023)
)

// debuggingReplica is the replica id of who wants to look at any replica (ListOffsetsRequest.DEBUGGING_REPLICA_ID).
const debuggingReplica = -2

// consumerReplica is the replica id of consumers.
const consumerReplica = -1

// notAvailable is the code that consumers of a version understand.
func notAvailable(version int16) Code {
	if version < 5 {
		return LeaderNotAvailable
	}
	return OffsetNotAvailable
}

var askSince = map[int64]int16{askMaxTimestamp: 7, askEarliestLocal: 8, askLatestTiered: 9, askEarliestPending: 11}

func (h *Handler) listOffsets(c call, req *kmsg.ListOffsetsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrListOffsetsResponse()
	seen := map[store.TP]int{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			seen[store.TP{Topic: req.Topics[i].Topic, Partition: req.Topics[i].Partitions[j].Partition}]++
		}
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for j := range t.Partitions {
			p := &t.Partitions[j]
			tp := store.TP{Topic: t.Topic, Partition: p.Partition}
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.Timestamp, rp.Offset, rp.LeaderEpoch = p.Partition, -1, -1, -1
			var err error
			if seen[tp] > 1 {
				err = refuse(InvalidRequest, "partition is named twice")
			} else {
				err = h.listOffset(req, tp, p, &rp)
			}
			rp.ErrorCode = h.count(c, codeOf(err))
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, nil
}

// listOffset answers for one partition.
func (h *Handler) listOffset(req *kmsg.ListOffsetsRequest, tp store.TP, q *kmsg.ListOffsetsRequestTopicPartition, rp *kmsg.ListOffsetsResponseTopicPartition) error {
	if since, ok := askSince[q.Timestamp]; ok && req.Version < since {
		return refuse(UnsupportedVersion, "timestamp %d needs version %d", q.Timestamp, since)
	}
	if q.Timestamp < askEarliestPending {
		return refuse(UnsupportedVersion, "timestamp %d is no question that is known", q.Timestamp)
	}
	part, err := h.leader(tp)
	if err != nil {
		return err
	}
	st, err := part.State(q.CurrentLeaderEpoch)
	if err != nil {
		return err
	}
	if !st.IsLeader && req.ReplicaID != debuggingReplica {
		return replica.ErrNotLeader
	}
	end := st.HighWatermark
	switch {
	case req.ReplicaID >= 0, req.ReplicaID == debuggingReplica:
		end = st.LogEnd
	case req.IsolationLevel == 1:
		end = st.LastStable
	}
	unsettled := error(nil)
	if st.Unsettled && req.ReplicaID == consumerReplica {
		unsettled = refuse(notAvailable(req.Version), "the leader is new and does not know the high watermark yet")
	}
	switch q.Timestamp {
	case askLatest:
		if unsettled != nil {
			return unsettled
		}
		rp.Offset, rp.LeaderEpoch = end, st.LeaderEpoch
		return nil
	case askEarliest, askEarliestLocal:
		rp.Offset, rp.LeaderEpoch = st.LogStart, part.Log().EpochAt(st.LogStart)
		return nil
	case askLatestTiered, askEarliestPending:
		return nil
	}
	find := part.Log().MaxTimestamp
	if q.Timestamp != askMaxTimestamp {
		find = func() (m timeMatch, ok bool, err error) { return part.Log().OffsetForTime(q.Timestamp) }
	}
	m, ok, err := find()
	switch {
	case err != nil:
		return err
	case !ok || m.Offset >= end:
		return unsettled
	}
	rp.Offset, rp.Timestamp, rp.LeaderEpoch = m.Offset, m.TimestampMs, m.LeaderEpoch
	return nil
}
