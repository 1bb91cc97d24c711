package node

import (
	"errors"
	"testing"

	"platter/coord/controller"
	"platter/coord/internal/coordtest"
	"platter/engine/store"
)

// TestRegistrationNotHeardOf: the controller may know a broker's new registration before the broker does. What it says
// then counts, as with Kafka.
func TestRegistrationNotHeardOf(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	now := m.node.epoch.Load()
	m.node.epoch.Store(now - 1) // of the session before
	m.create("t", 1)
	coordtest.Eventually(t, "the partition is led", func() bool {
		r, err := m.node.Host().Replica(store.TP{Topic: "t"})
		return err == nil && r.Log() != nil && m.node.Image().Topic("t") != nil
	})

	for name, epoch := range map[string]int64{"an earlier life": now + 1, "before the first registration": 0} {
		m.node.epoch.Store(epoch)
		h := controller.Header{ControllerID: 1, ControllerEpoch: 99, BrokerEpoch: now}
		if _, err := m.node.LeaderAndISR(t.Context(), controller.LeaderAndISR{Header: h}); !errors.Is(err, controller.ErrStaleBroker) {
			t.Errorf("%s: LeaderAndISR: %v", name, err)
		}
		if _, err := m.node.StopReplica(t.Context(), controller.StopReplica{Header: h}); !errors.Is(err, controller.ErrStaleBroker) {
			t.Errorf("%s: StopReplica: %v", name, err)
		}
		if err := m.node.UpdateMetadata(t.Context(), controller.UpdateMetadata{Header: h}); !errors.Is(err, controller.ErrStaleBroker) {
			t.Errorf("%s: UpdateMetadata: %v", name, err)
		}
	}

	// Whatever a broker refuses at first it hears in the end.
	m.node.epoch.Store(now + 1)
	created := m.node.Controller().CreateTopics(t.Context(), []controller.NewTopic{{Name: "u", PartitionCount: 1, ReplicationFactor: 1}})
	coordtest.Must(t, created[0].Err)
	m.node.epoch.Store(now)
	coordtest.Eventually(t, "the second topic is known", func() bool { return m.node.Image().Topic("u") != nil })
	m.produce(store.TP{Topic: "u"})
}
