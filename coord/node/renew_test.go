package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"platter/coord/internal/coordtest"
	"platter/engine/store"
)

// ambush calls do when the broker has said that it is registered, from that very place.
type ambush struct {
	slog.Handler
	do func()
}

func (a ambush) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "broker is registered" {
		a.do()
	}
	return a.Handler.Handle(ctx, r)
}

// TestExpiryWhileRenewing: the session that was made after one expired expires too, right after the broker has
// registered with it. It makes a third one, and so on.
func TestExpiryWhileRenewing(t *testing.T) {
	m := newMachine(t)
	var ends atomic.Int32
	m.cfg.Log = slog.New(ambush{slog.NewTextHandler(&m.logs, nil), func() {
		if ends.Add(-1) < 0 {
			return
		}
		id, password, err := readSession(m.disk, "/data/"+SessionFile)
		if err != nil {
			t.Error(err)
			return
		}
		m.end(id, password)
	}})
	m.mustStart()
	defer m.stop()
	m.create("t", 1)
	first := m.node.epoch.Load()
	ends.Store(3)
	m.endSession()
	coordtest.Eventually(t, "the broker is registered and leads again", func() bool {
		return ends.Load() < 0 && m.node.epoch.Load() > first && m.node.Controller().Active()
	})
	m.create("u", 1)
	m.produce(store.TP{Topic: "t"})
	m.produce(store.TP{Topic: "u"})
}
