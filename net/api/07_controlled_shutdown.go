package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ControlledShutdown: a broker is about to stop, and asks the controller to let others lead. Versions 2 and 3, which
// name the broker's epoch. The answer has the partitions that nobody else can lead.
func init() { register(kmsg.ControlledShutdown, 2, 3, (*Handler).controlledShutdown) }

func (h *Handler) controlledShutdown(c call, req *kmsg.ControlledShutdownRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrControlledShutdownResponse()
	remaining, err := h.Controller.ControlledShutdown(c.ctx, req.BrokerID, req.BrokerEpoch)
	resp.ErrorCode = h.count(c, codeOf(err))
	for _, tp := range remaining {
		r := kmsg.NewControlledShutdownResponsePartitionsRemaining()
		r.Topic, r.Partition = tp.Topic, tp.Partition
		resp.PartitionsRemaining = append(resp.PartitionsRemaining, r)
	}
	return resp, nil
}
