package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/controller"
	"platter/engine/store"
)

// ElectLeaders (KIP-183, KIP-460). Versions 0 to 2. Behaviour:
//   - preferred (0): the first replica leads, when it is in sync; unclean (1): any live replica leads
//     where the partition has no leader;
//   - a partition whose leader is right already is ELECTION_NOT_NEEDED, and left out of the answer when
//     all were asked for (null).
func init() { registerControlled(kmsg.ElectLeaders, 0, 2, (*Handler).electLeaders) }

const (
	electPreferred = 0
	electUnclean   = 1
)

func (h *Handler) electLeaders(c call, req *kmsg.ElectLeadersRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrElectLeadersResponse()
	var tps []store.TP
	if req.Topics != nil {
		tps = []store.TP{}
	}
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			tps = append(tps, store.TP{Topic: req.Topics[i].Topic, Partition: p})
		}
	}
	var out []controller.Elected
	var err error
	if req.ElectionType != electPreferred && req.ElectionType != electUnclean {
		err = refuse(InvalidRequest, "election type %d is unknown", req.ElectionType)
	} else {
		ctx, cancel := adminContext(c, req.TimeoutMillis)
		defer cancel()
		out, err = h.Controller.ElectLeaders(ctx, req.ElectionType == electUnclean, tps)
	}
	if err != nil { // version 0 can say it only by partition
		out = nil
		for _, tp := range tps {
			out = append(out, controller.Elected{TP: tp, Err: err})
		}
	}
	resp.ErrorCode = h.count(c, codeOf(err))
	at := map[string]int{}
	for i := range out {
		tp := out[i].TP
		k, ok := at[tp.Topic]
		if !ok {
			k = len(resp.Topics)
			at[tp.Topic] = k
			t := kmsg.NewElectLeadersResponseTopic()
			t.Topic = tp.Topic
			resp.Topics = append(resp.Topics, t)
		}
		p := kmsg.NewElectLeadersResponseTopicPartition()
		p.Partition, p.ErrorCode, p.ErrorMessage = tp.Partition, h.count(c, codeOf(out[i].Err)), textOf(out[i].Err)
		resp.Topics[k].Partitions = append(resp.Topics[k].Partitions, p)
	}
	return resp, nil
}
