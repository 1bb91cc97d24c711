package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/store"
	"platter/net/peer"
)

// LeaderAndIsr, the controller's word on which partitions this broker leads and follows. Versions 5 to 7, which name
// topics' ids. Behaviour:
//   - an older controller epoch than one that has spoken is STALE_CONTROLLER_EPOCH, a broker epoch older than
//     this broker's registration STALE_BROKER_EPOCH; then nothing changed. A newer one is taken: it may be known to
//     the controller before the broker has its answer (KafkaApis.isBrokerEpochStale);
//   - a partition whose leader epoch is older than the one held is STALE_CONTROLLER_EPOCH, one that cannot be
//     served KAFKA_STORAGE_ERROR;
//   - type full: partitions that are not named are stopped; their logs stay.
func init() { register(kmsg.LeaderAndISR, 5, 7, (*Handler).leaderAndISR) }

func (h *Handler) leaderAndISR(c call, req *kmsg.LeaderAndISRRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrLeaderAndISRResponse()
	r := peer.DecodeLeaderAndISR(req)
	errs, err := h.Peer.LeaderAndISR(c.ctx, r)
	resp.ErrorCode = h.count(c, codeOf(err))
	if err != nil {
		h.rejects.Warn("a controller's word was not taken", "controller", r.ControllerID, "epoch", r.ControllerEpoch, "err", err)
		return resp, nil
	}
	at := map[store.UUID]int{}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		k, ok := at[p.TopicID]
		if !ok {
			k = len(resp.Topics)
			at[p.TopicID] = k
			t := kmsg.NewLeaderAndISRResponseTopic()
			t.TopicID = p.TopicID
			resp.Topics = append(resp.Topics, t)
		}
		q := kmsg.NewLeaderAndISRResponseTopicPartition()
		q.Partition, q.ErrorCode = p.TP.Partition, h.count(c, codeOf(errs[i]))
		resp.Topics[k].Partitions = append(resp.Topics[k].Partitions, q)
	}
	return resp, nil
}
