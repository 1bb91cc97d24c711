package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/txn"
)

// InitProducerID. Versions 0 to 5. Behaviour: a new producer id for idempotence; a transactional id is
// refused for good until there are transactions.
func init() { register(kmsg.InitProducerID, 0, 5, (*Handler).initProducerID) }

// producerIDWait bounds the wait for a block of ids from the coordinator.
const producerIDWait = 10 * time.Second

func (h *Handler) initProducerID(c call, req *kmsg.InitProducerIDRequest) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(c.ctx, producerIDWait)
	defer cancel()
	resp := kmsg.NewPtrInitProducerIDResponse()
	id, epoch, err := h.ProducerIDs.Init(ctx, txn.InitRequest{
		TransactionalID: req.TransactionalID, ProducerID: req.ProducerID, ProducerEpoch: req.ProducerEpoch,
	})
	if err != nil {
		id, epoch = -1, -1
		h.Log.Debug("no producer id", "peer", c.Conn.Remote.String(), "err", err)
	}
	resp.ProducerID, resp.ProducerEpoch, resp.ErrorCode = id, epoch, h.count(c, codeOf(err))
	return resp, nil
}
