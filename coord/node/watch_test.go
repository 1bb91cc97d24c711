package node

import (
	"slices"
	"sync"
	"testing"

	"platter/coord/internal/coordtest"
)

// told notes what a watcher is told.
type told struct {
	mu      sync.Mutex
	roles   []string
	deleted []string
	all     int
}

func (w *told) RolesChanged(topics []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roles = append(w.roles, topics...)
	if topics == nil {
		w.all++
	}
}

func (w *told) TopicsDeleted(topics []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted = append(w.deleted, topics...)
}

func (w *told) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	coordtest.Eventually(t, "told of "+what, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return ok()
	})
}

// TestWatch: a watcher hears of roles and of topics that are gone, and of everything again when the broker
// comes back after its session has expired.
func TestWatch(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	m.create("before", 1)
	w := &told{}
	m.node.Watch(w)
	m.create("t", 2)
	w.await(t, "the roles in a new topic", func() bool { return slices.Contains(w.roles, "t") && !slices.Contains(w.roles, "before") })
	coordtest.Must(t, m.node.Controller().DeleteTopics(t.Context(), []string{"t"})[0])
	w.await(t, "a topic's end", func() bool { return slices.Equal(w.deleted, []string{"t"}) })
	m.create("t", 1)
	m.endSession()
	w.await(t, "all roles anew", func() bool { return w.all > 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.deleted, []string{"t"}) {
		t.Errorf("told of the end of %v", w.deleted)
	}
}
