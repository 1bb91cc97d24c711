package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/controller"
	"platter/engine/store"
	"platter/net/server"
	"platter/net/wire"
)

// deleteTopicsMax is the newest version; from 6 on a topic may be named by its id.
const deleteTopicsMax = 6

// DeleteTopics. Versions 1 to 6. Behaviour:
//   - by name, from version 6 on also by id; a topic named by both, or twice, is INVALID_REQUEST;
//   - the answer comes when the replicas are stopped, or after timeout.ms;
//   - with delete.topic.enable=false everything is refused.
func init() { registerControlled(kmsg.DeleteTopics, 1, deleteTopicsMax, (*Handler).deleteTopics) }

func (h *Handler) deleteTopics(c call, req *kmsg.DeleteTopicsRequest) (kmsg.Response, error) {
	resp := kmsg.NewPtrDeleteTopicsResponse()
	img := h.Image()
	wanted := req.Topics
	for i := range req.TopicNames {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &req.TopicNames[i]
		wanted = append(wanted, t)
	}
	count := map[string]int{}
	resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, len(wanted))
	errs := make([]error, len(wanted))
	for i := range wanted {
		q, t := &wanted[i], &resp.Topics[i]
		t.Default()
		t.Topic, t.TopicID = q.Topic, q.TopicID
		errs[i] = h.findDeleted(req, q, t)
		if t.Topic != nil {
			count[*t.Topic]++
			if known := img.Topics[*t.Topic]; known != nil {
				t.TopicID = known.ID
			}
		}
	}
	var names []string
	var index []int
	for i := range resp.Topics {
		if errs[i] == nil && count[*resp.Topics[i].Topic] > 1 {
			errs[i] = refuse(InvalidRequest, "topic is named twice in the request")
		}
		if errs[i] == nil {
			names, index = append(names, *resp.Topics[i].Topic), append(index, i)
		}
	}
	if len(names) > 0 {
		ctx, cancel := adminContext(c, req.TimeoutMillis)
		defer cancel()
		for k, err := range h.Controller.DeleteTopics(ctx, names) {
			errs[index[k]] = err
			if err == nil {
				h.Metrics.Forget(names[k])
			}
		}
	}
	for i := range resp.Topics {
		resp.Topics[i].ErrorCode, resp.Topics[i].ErrorMessage = h.count(c, codeOf(errs[i])), textOf(errs[i])
	}
	return resp, nil
}

// findDeleted settles the name of one topic to delete.
func (h *Handler) findDeleted(req *kmsg.DeleteTopicsRequest, q *kmsg.DeleteTopicsRequestTopic, t *kmsg.DeleteTopicsResponseTopic) error {
	byID := q.TopicID != [16]byte{}
	switch {
	case !h.Config.Bool("delete.topic.enable"):
		if req.Version < 3 {
			return refuse(InvalidRequest, "topic deletion is disabled")
		}
		return refuse(TopicDeletionDisabled, "topic deletion is disabled")
	case byID && q.Topic != nil, !byID && q.Topic == nil:
		return refuse(InvalidRequest, "a topic is named by its name or by its id")
	case byID:
		known := h.Image().ByID[store.UUID(q.TopicID)]
		if known == nil {
			return refuse(UnknownTopicID, "this server does not host this topic id")
		}
		t.Topic = &known.Name
	}
	return nil
}

// deletionAgain is a request as it may be sent again: it names topics by the ids that they have now. The first may have
// been carried out, and other topics have the names by then, created for a client that goes on producing. Names that
// are not known here stay. settle makes an answer one to the request as it came.
func (h *Handler) deletionAgain(c call) (again call, settle func(kmsg.Response)) {
	decoded, err := wire.Decode(c.Key, c.Version, c.Body)
	if err != nil {
		return c, func(kmsg.Response) {} // whoever answers finds out
	}
	req := decoded.(*kmsg.DeleteTopicsRequest)
	for i := range req.TopicNames {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &req.TopicNames[i]
		req.Topics = append(req.Topics, t)
	}
	img, names := h.Image(), map[store.UUID]string{}
	for i := range req.Topics {
		t := &req.Topics[i]
		if t.Topic == nil || t.TopicID != [16]byte{} {
			continue
		}
		if known := img.Topics[*t.Topic]; known != nil && known.ID != (store.UUID{}) {
			names[known.ID] = known.Name
			t.Topic, t.TopicID = nil, known.ID
		}
	}
	req.TopicNames = nil
	req.Version = deleteTopicsMax
	hd := c.Header
	hd.Version = req.Version
	again = call{&server.Request{Header: hd, Conn: c.Conn, Body: req.AppendTo(nil), Received: c.Received}, c.ctx}
	return again, func(resp kmsg.Response) {
		topics := resp.(*kmsg.DeleteTopicsResponse).Topics
		for i := range topics {
			t := &topics[i]
			name, ok := names[t.TopicID]
			if !ok {
				continue
			}
			t.Topic = &name
			if t.ErrorCode == int16(UnknownTopicID) {
				gone := fmt.Errorf("%w: '%s'", controller.ErrUnknownTopic, name)
				t.ErrorCode, t.ErrorMessage = int16(codeOf(gone)), textOf(gone)
			}
		}
	}
}
