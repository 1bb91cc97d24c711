package node

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/internal/coordtest"
	"platter/coord/zkclient"
	"platter/engine/store"
)

// TestAlterTogether: changes that are made at the same time are all kept, and in effect when they are answered.
func TestAlterTogether(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	m.create("t", 1)
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			err := m.node.AlterTopic(t.Context(), "t", func(old map[string]string) (map[string]string, error) {
				next := maps.Clone(old)
				next[fmt.Sprint("k", i)] = "v"
				return next, nil
			}, false)
			if err != nil {
				t.Error(err)
			}
			if m.node.Image().Topic("t").Configs[fmt.Sprint("k", i)] != "v" {
				t.Errorf("change %d is answered and not in effect", i)
			}
		})
	}
	all.Wait()
	if got := len(m.node.Image().Topic("t").Configs); got != n {
		t.Errorf("%d of %d changes are there", got, n)
	}
	set := func(map[string]string) (map[string]string, error) {
		return map[string]string{"max.message.bytes": "99"}, nil
	}
	coordtest.Must(t, m.node.AlterTopic(t.Context(), "t", set, true))
	if got := len(m.node.Image().Topic("t").Configs); got != n {
		t.Errorf("a dry run changed something")
	}
	coordtest.Must(t, m.node.AlterTopic(t.Context(), "t", set, false))
	if r, err := m.node.Host().Replica(store.TP{Topic: "t"}); err != nil || r.Log().Config().MaxMessageBytes != 99 {
		t.Errorf("the log has not its new limit (%v)", err)
	}
	if err := m.node.AlterTopic(t.Context(), "nowhere", set, false); !errors.Is(err, controller.ErrUnknownTopic) {
		t.Errorf("a topic that is not there: %v", err)
	}
}

// TestChangesAreBounded: however many changes were made, the list of them stays short enough to be read.
func TestChangesAreBounded(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	m.create("t", 1)
	zk := m.zk.Client()
	for range changesMax + 200 {
		_, err := zk.Create(t.Context(), cluster.ConfigChangeSequencePath(), cluster.EncodeConfigChange("topics/t"), zkclient.PersistentSequential)
		coordtest.Must(t, err)
	}
	coordtest.Eventually(t, "few changes are left", func() bool {
		names, _, err := zk.Children(t.Context(), cluster.ConfigChangesPath, nil)
		return err == nil && len(names) <= changesMax+1
	})
	coordtest.Must(t, m.node.AlterBroker(t.Context(), -1, func(map[string]string) (map[string]string, error) { return map[string]string{"x": "y"}, nil }, false))
	if got := m.node.Image().BrokerConfigs[""]["x"]; got != "y" {
		t.Errorf("the image says %q", got)
	}
}
