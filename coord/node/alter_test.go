package node

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/internal/coordtest"
	"platter/coord/zkclient"
	"platter/engine/store"
	"platter/io/clock"
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

// off is a clock that is wrong.
type off struct {
	clock.Real
	by time.Duration
}

func (o off) Now() time.Time { return o.Real.Now().Add(o.by) }
func (o off) NowMs() int64   { return o.Now().UnixMilli() }

// TestChangesAreBounded: however many changes were made, the list of them stays short enough to be read; but none is
// removed so early that another broker may not have seen it.
func TestChangesAreBounded(t *testing.T) {
	for name, wrong := range map[string]off{"old": {by: 2 * surplusAge}, "new": {by: -time.Hour}} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.cfg.Clock = wrong
			m.mustStart()
			defer m.stop()
			m.create("t", 1)
			zk := m.zk.Client()
			for range changesMax + 200 {
				m.tell(zk, "topics/t")
			}
			count := func() int {
				names, _, err := zk.Children(t.Context(), cluster.ConfigChangesPath, nil)
				coordtest.Must(t, err)
				return len(names)
			}
			if name == "old" {
				coordtest.Eventually(t, "few changes are left", func() bool { return count() <= changesMax+1 })
			}
			coordtest.Must(t, m.node.AlterBroker(t.Context(), -1, func(map[string]string) (map[string]string, error) { return map[string]string{"x": "y"}, nil }, false))
			if got := m.node.Image().BrokerConfigs[""]["x"]; got != "y" {
				t.Errorf("the image says %q", got)
			}
			if name == "new" && count() != changesMax+201 {
				t.Errorf("%d changes are left", count())
			}
		})
	}
}

// tell makes a change that names an entity, and gives its path.
func (m *machine) tell(zk *zkclient.Client, entity string) string {
	m.t.Helper()
	path, err := zk.Create(m.t.Context(), cluster.ConfigChangeSequencePath(), cluster.EncodeConfigChange(entity), zkclient.PersistentSequential)
	coordtest.Must(m.t, err)
	return path
}

// TestMissedChanges: an override whose change has come and gone before the broker could see it comes into effect all the
// same.
func TestMissedChanges(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	m.create("t", 1)
	zk := m.zk.Client()
	limit := 100
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"the session expires", m.endSession},
		{"the coordinator is away", func() { m.zk.Stop(); m.zk.Restart() }},
		{"a change is removed at once", func() {
			n := changeNumber(m.tell(zk, "brokers/1"))
			_, err := zk.Multi(t.Context(),
				zkclient.CreateOp(cluster.ConfigChangeSequencePath(), cluster.EncodeConfigChange("topics/t"), zkclient.PersistentSequential),
				zkclient.DeleteOp(cluster.ConfigChangePath(fmt.Sprintf("%s%010d", changePrefix, n+1)), -1))
			coordtest.Must(t, err)
			m.tell(zk, "brokers/1")
		}},
	} {
		limit++
		_, err := zk.Set(t.Context(), "/config/topics/t", []byte(fmt.Sprintf(`{"version":1,"config":{"max.message.bytes":"%d"}}`, limit)), -1)
		coordtest.Must(t, err)
		c.do()
		coordtest.Eventually(t, "the override counts after "+c.name, func() bool {
			r, err := m.node.Host().Replica(store.TP{Topic: "t"})
			return err == nil && r.Log().Config().MaxMessageBytes == limit
		})
	}
	_, err := zk.Set(t.Context(), "/config/topics/t", []byte(`{"version":1,"config":{}}`), -1)
	coordtest.Must(t, err)
	m.endSession()
	coordtest.Eventually(t, "the override is gone", func() bool { return len(m.node.Image().Topic("t").Configs) == 0 })
}

func TestGap(t *testing.T) {
	at := func(numbers ...int) (out []string) {
		for _, n := range numbers {
			out = append(out, cluster.ConfigChangePath(fmt.Sprintf("%s%010d", changePrefix, n)))
		}
		return out
	}
	for _, c := range []struct {
		last  string
		paths []string
		want  bool
	}{
		{"", nil, false},
		{"", at(0, 1, 2), false},
		{"", at(5), true},
		{at(4)[0], at(5, 6), false},
		{at(4)[0], at(6), true},
		{at(4)[0], at(5, 7), true},
		{at(4)[0], nil, false},
		{at(4)[0], []string{"/config/changes/config_change_junk"}, true},
	} {
		if got := gap(c.last, c.paths); got != c.want {
			t.Errorf("after %q %v: %v", c.last, c.paths, got)
		}
	}
}
