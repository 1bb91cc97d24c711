package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/coord/config"
	"platter/coord/controller"
	"platter/engine/store"
	"platter/io/clock"
	"platter/net/frame"
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

func (elsewhere) DeleteTopics(_ context.Context, names []string) []error {
	out := make([]error, len(names))
	for i := range out {
		out[i] = controller.ErrNotController
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

// TestDeletionIsSentAgainByID: a deletion whose answer was lost is sent again for the topic that was meant, not for
// another that has its name by then; and the answer is one to what was asked.
func TestDeletionIsSentAgainByID(t *testing.T) {
	first, second := [16]byte{1}, [16]byte{2}
	for name, c := range map[string]struct {
		lost func(topics map[string][16]byte) // what became of the first request, which nobody answered
		want Code
		left [16]byte
	}{
		"it did not arrive": {func(map[string][16]byte) {}, None, [16]byte{}},
		"it was carried out": {func(topics map[string][16]byte) {
			delete(topics, "t")
		}, UnknownTopicOrPartition, [16]byte{}},
		"the name is another's": {func(topics map[string][16]byte) {
			topics["t"] = second
		}, UnknownTopicOrPartition, second},
	} {
		for _, version := range []int16{1, 5, 6} {
			t.Run(fmt.Sprintf("%s, version %d", name, version), func(t *testing.T) {
				topics := map[string][16]byte{"t": first}
				calls := 0
				h := forwarding(t, nil)
				img := cluster.NewImage("c")
				img.Topics = map[string]*cluster.Topic{"t": {Name: "t", ID: first}}
				img.ByID = map[store.UUID]*cluster.Topic{first: img.Topics["t"]}
				h.Image = func() *cluster.Image { return img }
				h.Forward = func(_ context.Context, _, version int16, _ bool, body []byte) ([]byte, error) {
					if calls++; calls == 1 {
						c.lost(topics)
						return nil, io.EOF
					}
					return deleteFrom(t, topics, version, body), nil
				}
				got := deleteAnswer(t, h, deleteRequest(version, "t"))
				if got.Topic == nil || *got.Topic != "t" || got.ErrorCode != int16(c.want) {
					t.Errorf("answered %+v, want code %d", got, c.want)
				}
				if topics["t"] != c.left {
					t.Errorf("the topic is %x, want %x", topics["t"], c.left)
				}
			})
		}
	}
}

func deleteRequest(version int16, name string) *server.Request {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis = version, 60_000
	req.TopicNames = []string{name}
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &name
	req.Topics = append(req.Topics, topic)
	return &server.Request{Header: wire.Header{Key: req.Key(), Version: version, ClientID: []byte("a client")}, Body: req.AppendTo(nil)}
}

// deleteFrom is a controller that has these topics.
func deleteFrom(t *testing.T, topics map[string][16]byte, version int16, body []byte) []byte {
	t.Helper()
	req, resp := kmsg.NewPtrDeleteTopicsRequest(), kmsg.NewPtrDeleteTopicsResponse()
	req.SetVersion(version)
	resp.SetVersion(version)
	if err := req.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	for i := range req.Topics {
		a := kmsg.NewDeleteTopicsResponseTopic()
		a.TopicID, a.ErrorCode = req.Topics[i].TopicID, int16(UnknownTopicID)
		for name, id := range topics {
			if id == a.TopicID {
				delete(topics, name)
				a.Topic, a.ErrorCode = &name, 0
			}
		}
		resp.Topics = append(resp.Topics, a)
	}
	for i := range req.TopicNames {
		a := kmsg.NewDeleteTopicsResponseTopic()
		a.Topic = &req.TopicNames[i]
		delete(topics, req.TopicNames[i])
		resp.Topics = append(resp.Topics, a)
	}
	return resp.AppendTo(nil)
}

// deleteAnswer is what a client gets.
func deleteAnswer(t *testing.T, h *Handler, r *server.Request) kmsg.DeleteTopicsResponseTopic {
	t.Helper()
	reply, err := h.byController(call{r, t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Release()
	client, broker := net.Pipe()
	defer client.Close()
	go func() {
		_ = reply.Send(broker, frame.Options{})
		broker.Close()
	}()
	p, err := io.ReadAll(client)
	if err != nil {
		t.Fatal(err)
	}
	resp := kmsg.NewPtrDeleteTopicsResponse()
	resp.SetVersion(r.Version)
	p = p[8:] // length, correlation id
	if resp.IsFlexible() {
		p = p[1:]
	}
	if err := resp.ReadFrom(p); err != nil || len(resp.Topics) != 1 {
		t.Fatalf("%d topics, %v", len(resp.Topics), err)
	}
	return resp.Topics[0]
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
