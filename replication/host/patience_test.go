package host

import (
	"errors"
	"testing"
	"time"

	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
)

// hangingLogs is a store of which one topic's disk hangs.
type hangingLogs struct {
	logs
	hung chan struct{} // closed: it goes on
}

func (h hangingLogs) Create(tp store.TP, id store.UUID, c commitlog.Config) (*commitlog.Log, error) {
	if tp.Topic == "hung" {
		<-h.hung
	}
	return h.logs.Create(tp, id, c)
}

// TestADiskThatHangs: the controller's words for other disks are obeyed, those for it are given up on, once, and done in
// the end.
func TestADiskThatHangs(t *testing.T) {
	_, s := openHost(t)
	hung := make(chan struct{})
	h := newHost(Config{Broker: 1, Clock: clock.Real{}}, hangingLogs{s, hung})
	h.patience.max = 3 * time.Second // what a disk that answers stays below on any machine
	var states []PartitionState
	for p := range int32(4) {
		states = append(states, state("hung", p, 1, 0), state("good", p, 2, 0))
	}
	for i, err := range h.Apply(states) {
		if hung := states[i].TP.Topic == "hung"; errors.Is(err, ErrHangs) != hung || !hung && err != nil {
			t.Errorf("%s: %v", states[i].TP, err)
		}
	}
	h.patience.max = time.Hour // nobody waits for what is given up on
	for i, err := range h.Apply(states) {
		if hung := states[i].TP.Topic == "hung"; errors.Is(err, ErrHangs) != hung || !hung && err != nil {
			t.Errorf("again, %s: %v", states[i].TP, err)
		}
	}
	close(hung)
	for limit := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		if r, err := h.Replica(store.TP{Topic: "hung", Partition: 3}); err == nil {
			if st, err := r.State(0); err == nil && st.IsLeader {
				break
			}
		}
		if time.Now().After(limit) {
			t.Fatal("what hung was never done")
		}
	}
}
