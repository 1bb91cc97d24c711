package api

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/config"
	"platter/coord/controller"
	"platter/io/clock"
	"platter/net/peer"
	"platter/net/server"
	"platter/net/wire"
)

// elsewhere is a controller that this broker is not.
type elsewhere struct{ Controller }

func (elsewhere) Active() bool { return false }

func (elsewhere) CreateTopics(_ context.Context, ts []controller.NewTopic) []controller.Created {
	out := make([]controller.Created, len(ts))
	for i := range ts {
		out[i] = controller.Created{Name: ts[i].Name, Err: controller.ErrNotController}
	}
	return out
}

// forwarding is a handler that reaches the controller by forward.
func forwarding(t *testing.T, forward func(topics *kmsg.CreateTopicsResponse) error) *Handler {
	t.Helper()
	cfg, _, err := config.Load(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(Deps{Controller: elsewhere{}, Clock: clock.Real{}, Config: cfg, Forward: func(_ context.Context, _, version int16, _ bool, _ []byte) ([]byte, error) {
		resp := kmsg.NewPtrCreateTopicsResponse()
		resp.SetVersion(version)
		if err := forward(resp); err != nil {
			return nil, err
		}
		return resp.AppendTo(nil), nil
	}})
}

// createRequest asks for topic t.
func createRequest(client string, timeout time.Duration) *server.Request {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 4, int32(timeout.Milliseconds())
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 1, 1
	req.Topics = append(req.Topics, topic)
	return &server.Request{Header: wire.Header{Key: req.Key(), Version: req.Version, ClientID: []byte(client)}, Body: req.AppendTo(nil)}
}

func answered(code Code) func(*kmsg.CreateTopicsResponse) error {
	return func(resp *kmsg.CreateTopicsResponse) error {
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic, topic.ErrorCode = "t", int16(code)
		resp.Topics = append(resp.Topics, topic)
		return nil
	}
}

// TestForwardedOnce: a request that another broker forwarded is answered here, whoever is the controller.
func TestForwardedOnce(t *testing.T) {
	for client, want := range map[string]int{"a client": 1, "": 1, peer.ForwardClient: 0} {
		forwarded := 0
		h := forwarding(t, func(resp *kmsg.CreateTopicsResponse) error {
			forwarded++
			return answered(None)(resp)
		})
		reply, err := h.byController(call{createRequest(client, time.Minute), t.Context()})
		if err != nil || reply == nil || forwarded != want {
			t.Errorf("%q: forwarded %d times, want %d; %v", client, forwarded, want, err)
		}
	}
}

// TestControllerIsWaitedFor: while the controller is away, or is another one, requests for it wait within their own
// time.
func TestControllerIsWaitedFor(t *testing.T) {
	gone := func(*kmsg.CreateTopicsResponse) error { return io.EOF }
	for name, c := range map[string]struct {
		answers []func(*kmsg.CreateTopicsResponse) error // the last again and again
		timeout time.Duration
		want    int // calls, at least
		took    time.Duration
	}{
		"there":         {answers: []func(*kmsg.CreateTopicsResponse) error{answered(TopicAlreadyExists)}, timeout: time.Minute, want: 1},
		"away":          {answers: []func(*kmsg.CreateTopicsResponse) error{gone, gone, gone, answered(None)}, timeout: time.Minute, want: 4, took: 3 * controllerPoll},
		"another":       {answers: []func(*kmsg.CreateTopicsResponse) error{answered(NotController), answered(None)}, timeout: time.Minute, want: 2, took: controllerPoll},
		"away for good": {answers: []func(*kmsg.CreateTopicsResponse) error{gone}, timeout: time.Second, want: 2, took: time.Second},
		"no time":       {answers: []func(*kmsg.CreateTopicsResponse) error{gone}, timeout: 0, want: 1, took: adminWaitMin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				h := forwarding(t, func(resp *kmsg.CreateTopicsResponse) error {
					calls++
					return c.answers[min(calls, len(c.answers))-1](resp)
				})
				begun := time.Now()
				reply, err := h.byController(call{createRequest("a client", c.timeout), t.Context()})
				if err != nil || reply == nil || calls < c.want {
					t.Errorf("%d calls, want %d: %v", calls, c.want, err)
				}
				if took := time.Since(begun); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// TestControllerIsNotWaitedForWhileStopping: a broker that stops says so.
func TestControllerIsNotWaitedForWhileStopping(t *testing.T) {
	h := forwarding(t, func(*kmsg.CreateTopicsResponse) error { return errors.New("away") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if reply, err := h.byController(call{createRequest("a client", time.Hour), ctx}); err != nil || reply == nil {
		t.Error(err)
	}
}

// TestNothingIsToldBeforeItIsKnown: clients of a broker that the controller has not told of the cluster wait.
func TestNothingIsToldBeforeItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := forwarding(t, answered(None))
		done := false
		go func() {
			_, err := h.Serve(t.Context(), createRequest("a client", time.Minute))
			done = err == nil
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if done {
			t.Error("it was answered before the broker knew the cluster")
		}
		for _, key := range []kmsg.Key{kmsg.ApiVersions, kmsg.UpdateMetadata, kmsg.LeaderAndISR, kmsg.StopReplica} {
			if !early[int16(key)] {
				t.Errorf("%s would wait for itself", wire.KeyName(int16(key)))
			}
		}
		h.Joined()
		h.Joined()
		synctest.Wait()
		if !done {
			t.Error("it was not answered afterwards")
		}
	})
}
