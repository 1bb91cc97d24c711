package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/replication/replica"
)

// DeleteRecords (KIP-107). Versions 0 to 2. Behaviour:
//   - the log start rises to the offset given, -1 standing for the high watermark; one below the start
//     changes nothing, one beyond the high watermark is OFFSET_OUT_OF_RANGE;
//   - the answer comes when the new start is durable here and the followers on live brokers have it too, so that it
//     holds whoever leads next, and tells the least start; else it is REQUEST_TIMED_OUT after timeout.ms;
//   - records of a topic that is compacted only are POLICY_VIOLATION, those of the topics that the broker
//     keeps for itself INVALID_TOPIC_EXCEPTION.
func init() { register(kmsg.DeleteRecords, 0, 2, (*Handler).deleteRecords) }

// untilHighWatermark is DeleteRecordsRequest.HIGH_WATERMARK.
const untilHighWatermark = -1

func (h *Handler) deleteRecords(c call, req *kmsg.DeleteRecordsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDeleteRecordsResponse()
	var trimmed []store.TP
	for i := range req.Topics {
		q := &req.Topics[i]
		t := kmsg.NewDeleteRecordsResponseTopic()
		t.Topic = q.Topic
		for j := range q.Partitions {
			tp := store.TP{Topic: q.Topic, Partition: q.Partitions[j].Partition}
			p := kmsg.NewDeleteRecordsResponseTopicPartition()
			p.Partition, p.LowWatermark = tp.Partition, -1
			start, err := h.deleteBelow(tp, q.Partitions[j].Offset)
			if err == nil {
				p.LowWatermark = start
				trimmed = append(trimmed, tp)
			}
			p.ErrorCode = h.count(c, codeOf(err))
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	if len(trimmed) == 0 {
		return resp, nil
	}
	if err := h.Store.CheckpointStarts(trimmed...); err != nil {
		h.failDeletes(c, resp, err)
		return resp, nil
	}
	ctx, cancel := adminContext(c, req.TimeoutMillis)
	defer cancel()
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			if p := &t.Partitions[j]; Code(p.ErrorCode) == None {
				h.awaitDeleted(ctx, c, store.TP{Topic: t.Topic, Partition: p.Partition}, p)
			}
		}
	}
	return resp, nil
}

// deletePoll is how often it is looked how far the followers are.
const deletePoll = 5 * time.Millisecond

// awaitDeleted waits until the followers have taken over the log start that p tells.
func (h *Handler) awaitDeleted(ctx context.Context, c call, tp store.TP, p *kmsg.DeleteRecordsResponseTopicPartition) {
	for {
		part, err := h.leader(tp)
		var st replica.State
		if err == nil {
			st, err = part.State(-1)
		}
		if err == nil && !st.IsLeader {
			err = replica.ErrNotLeader
		}
		if err == nil {
			img := h.Image()
			if low := part.LowWatermark(func(id int32) bool { return isAlive(img, id) }); low >= p.LowWatermark {
				p.LowWatermark = low
				return
			}
			select {
			case <-h.Clock.After(deletePoll):
				continue
			case <-ctx.Done():
				err = refuse(RequestTimedOut, "followers have not deleted the records yet")
			}
		}
		p.ErrorCode, p.LowWatermark = h.count(c, codeOf(err)), -1
		return
	}
}

// failDeletes: what was trimmed may come back after a crash, so nothing was promised.
func (h *Handler) failDeletes(c call, resp *kmsg.DeleteRecordsResponse, err error) {
	h.Log.Error("deleted records: the log starts were not written", "err", err)
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if p := &resp.Topics[i].Partitions[j]; Code(p.ErrorCode) == None {
				p.ErrorCode, p.LowWatermark = h.count(c, KafkaStorageError), -1
			}
		}
	}
}

// deleteBelow raises one log's start and returns it.
func (h *Handler) deleteBelow(tp store.TP, offset int64) (start int64, err error) {
	if isInternal(tp.Topic) {
		return 0, refuse(InvalidTopicException, "cannot delete records of internal topic %s", tp.Topic)
	}
	part, err := h.leader(tp)
	if err != nil {
		return 0, err
	}
	st, err := part.State(-1)
	if err != nil {
		return 0, err
	}
	if !st.IsLeader {
		return 0, replica.ErrNotLeader
	}
	if offset == untilHighWatermark {
		offset = st.HighWatermark
	}
	switch {
	case !part.Log().Config().DeleteRetention:
		return 0, refuse(PolicyViolation, "records of partition %s cannot be deleted due to the configured policy", tp)
	case offset < 0 || offset > st.HighWatermark:
		return 0, refuse(OffsetOutOfRange, "the offset to delete to (%d) is not within 0 and the high watermark %d", offset, st.HighWatermark)
	}
	if err := part.Log().TrimTo(offset); err != nil {
		return 0, err
	}
	part.Advance()
	return part.Log().Ends().Start, nil
}
