package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FindCoordinator. Versions 0 to 6. Behaviour:
//   - groups: the leader of their partition of __consumer_offsets, which is created on first use;
//   - transactional ids are refused for good (TRANSACTIONAL_ID_AUTHORIZATION_FAILED) until there are
//     transactions: a retriable code would make clients ask for ever;
//   - share groups and unknown types are INVALID_REQUEST.
func init() { register(kmsg.FindCoordinator, 0, 6, (*Handler).findCoordinator) }

// Coordinator types on the wire.
const (
	groupCoordinator = 0
	txnCoordinator   = 1
)

func (h *Handler) findCoordinator(c call, req *kmsg.FindCoordinatorRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	keys := req.CoordinatorKeys
	if req.Version < 4 {
		keys = []string{req.CoordinatorKey}
	}
	for _, key := range keys {
		rc := kmsg.NewFindCoordinatorResponseCoordinator()
		rc.Key, rc.NodeID, rc.Port = key, -1, -1
		err := h.coordinator(c, req.CoordinatorType, &rc)
		rc.ErrorCode, rc.ErrorMessage = h.count(c, codeOf(err)), textOf(err)
		resp.Coordinators = append(resp.Coordinators, rc)
	}
	if req.Version < 4 {
		rc := &resp.Coordinators[0]
		resp.ErrorCode, resp.ErrorMessage = rc.ErrorCode, rc.ErrorMessage
		resp.NodeID, resp.Host, resp.Port = rc.NodeID, rc.Host, rc.Port
	}
	return resp, nil
}

// coordinator fills in who coordinates one key.
func (h *Handler) coordinator(c call, kind int8, rc *kmsg.FindCoordinatorResponseCoordinator) error {
	switch kind {
	case groupCoordinator:
	case txnCoordinator:
		return refuse(TransactionalIDAuthorizationFailed, "transactions are not supported")
	default:
		return refuse(InvalidRequest, "coordinator type %d is not supported", kind)
	}
	id, err := h.Groups.Leader(c.ctx, rc.Key)
	if err != nil {
		h.rejects.Warn("a group has no coordinator", "group", rc.Key, "err", err)
		return err
	}
	b, ok := h.Image().Broker(id)
	if !ok {
		return refuse(CoordinatorNotAvailable, "broker %d, which coordinates the group, is not there", id)
	}
	e, ok := b.Endpoint(c.listener())
	if !ok {
		return refuse(CoordinatorNotAvailable, "broker %d has no endpoint on listener %s", id, c.listener())
	}
	rc.NodeID, rc.Host, rc.Port = b.ID, e.Host, e.Port
	return nil
}
