package api

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/net/peer"
	"platter/net/server"
	"platter/net/wire"
)

// elsewhere is a controller that this broker is not.
type elsewhere struct{ Controller }

func (elsewhere) Active() bool { return false }

// TestForwardedOnce: a request that another broker forwarded is answered here, whoever is the controller.
func TestForwardedOnce(t *testing.T) {
	forwarded := 0
	h := &Handler{Deps: Deps{Controller: elsewhere{}, Forward: func(context.Context, int16, int16, bool, []byte) ([]byte, error) {
		forwarded++
		return nil, nil
	}}}
	for _, c := range []struct {
		client string
		key    kmsg.Key
		want   bool
	}{
		{"a client", kmsg.CreateTopics, true},
		{"", kmsg.ElectLeaders, true},
		{"a client", kmsg.Metadata, false},
		{peer.ForwardClient, kmsg.CreateTopics, false},
		{peer.ForwardClient, kmsg.DeleteTopics, false},
	} {
		before := forwarded
		r := &server.Request{Header: wire.Header{Key: int16(c.key), Version: 2, ClientID: []byte(c.client)}}
		reply := h.forward(call{r, t.Context()})
		if got := reply != nil; got != c.want || got != (forwarded > before) {
			t.Errorf("%s of %q: forwarded %v, want %v", wire.KeyName(int16(c.key)), c.client, got, c.want)
		}
	}
}
