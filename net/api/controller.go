package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/frame"
	"platter/net/peer"
	"platter/net/wire"
)

// responders answer the requests that only the controller does, before they are encoded.
var responders = map[int16]func(*Handler, call) (kmsg.Response, error){}

// registerControlled serves a key whose requests go to the controller from whichever broker they come to.
func registerControlled[Q kmsg.Request](key kmsg.Key, min, max int16, answer func(*Handler, call, Q) (kmsg.Response, error)) {
	register(key, min, max, answer)
	responders[int16(key)] = func(h *Handler, c call) (kmsg.Response, error) {
		req, err := wire.Decode(c.Key, c.Version, c.Body)
		if err != nil {
			return nil, err
		}
		return answer(h, c, req.(Q))
	}
}

const (
	// controllerPoll is how often it is looked for the next controller while there is none.
	controllerPoll = 20 * time.Millisecond
	// forwardMax bounds how long an answer of the controller is waited for.
	forwardMax = 60 * time.Second
)

// byController answers by the controller: it is this broker, or the request is forwarded to it. While one controller
// has gone and the next is not there yet the request waits, within its own timeout, as it does in Kafka's brokers
// that forward (BrokerToControllerChannelManager): then too what was under way is sent again when the connection to
// the controller breaks, so a topic may turn out to exist already, or, as deletionAgain has it, to be gone. What
// another broker has forwarded is answered here, whoever is the controller: that broker tries again.
func (h *Handler) byController(c call) (*frame.Reply, error) {
	if h.Forward == nil || string(c.ClientID) == peer.ForwardClient {
		return answerers[c.Key](h, c)
	}
	ctx, cancel := context.WithTimeout(c.ctx, min(requestTimeout(c), forwardMax))
	defer cancel()
	again, settle := c, func(kmsg.Response) {}
	if kmsg.Key(c.Key) == kmsg.DeleteTopics {
		again, settle = h.deletionAgain(c)
	}
	for next := c; ; next = again {
		resp, err := h.askController(ctx, next, again)
		if err == nil {
			settle(resp)
		}
		if err != nil || !saysNotController(resp) || ctx.Err() != nil {
			return h.controlled(c, resp, err)
		}
		select {
		case <-h.Clock.After(controllerPoll):
		case <-ctx.Done():
			return h.controlled(c, resp, nil)
		}
	}
}

func (h *Handler) controlled(c call, resp kmsg.Response, err error) (*frame.Reply, error) {
	if err != nil {
		return nil, err
	}
	resp.SetVersion(c.Version)
	return encode(c.Header, resp), nil
}

// askController asks once. Where the controller is not reached, this broker answers, mostly that it is not the one: to
// again, since the request may have been carried out.
func (h *Handler) askController(ctx context.Context, c, again call) (kmsg.Response, error) {
	if !h.Controller.Active() {
		body, err := h.Forward(ctx, c.Key, c.Version, wire.Flexible(c.Key, c.Version), c.Body)
		if err == nil {
			resp := kmsg.ResponseForKey(c.Key)
			resp.SetVersion(c.Version)
			if err = resp.ReadFrom(body); err == nil {
				return resp, nil
			}
		}
		h.rejects.Warn("the controller was not reached", "request", wire.KeyName(c.Key), "err", err)
		c = again
	}
	return responders[c.Key](h, c)
}

// requestTimeout is how long the client waits, by the request's own word.
func requestTimeout(c call) time.Duration {
	req, err := wire.Decode(c.Key, c.Version, c.Body)
	if err != nil {
		return 0 // whoever answers finds out
	}
	if r, ok := req.(kmsg.TimeoutRequest); ok {
		return max(time.Duration(r.Timeout())*time.Millisecond, adminWaitMin)
	}
	return forwardMax
}

// saysNotController finds the code wherever an answer may have it.
func saysNotController(resp kmsg.Response) bool {
	const code = int16(NotController)
	switch r := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		for i := range r.Topics {
			if r.Topics[i].ErrorCode == code {
				return true
			}
		}
	case *kmsg.DeleteTopicsResponse:
		for i := range r.Topics {
			if r.Topics[i].ErrorCode == code {
				return true
			}
		}
	case *kmsg.CreatePartitionsResponse:
		for i := range r.Topics {
			if r.Topics[i].ErrorCode == code {
				return true
			}
		}
	case *kmsg.ElectLeadersResponse:
		if r.ErrorCode == code {
			return true
		}
		for i := range r.Topics {
			for _, p := range r.Topics[i].Partitions {
				if p.ErrorCode == code {
					return true
				}
			}
		}
	case *kmsg.ListPartitionReassignmentsResponse:
		return r.ErrorCode == code
	}
	return false
}
