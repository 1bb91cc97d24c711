package host

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/memdisk"
	"platter/replication/core"
	"platter/replication/replica"
)

// TestLag: a follower that stays behind for replica.lag.time.max.ms is proposed out of the in-sync set, one that keeps
// up is not, and a host that ended looks no more.
func TestLag(t *testing.T) { lags(t, 0) }

// TestLagOfAWrongClock: nor does it help the one or harm the other that the machine's clock is set back, or forward.
func TestLagOfAWrongClock(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(jump.String(), func(t *testing.T) { lags(t, jump) })
	}
}

// lags sets the clock anew, by jump, at every tick.
func lags(t *testing.T, jump time.Duration) {
	s, err := store.Open(t.Context(), store.Config{
		FS: memdisk.New(memdisk.Options{}), Clock: clock.Real{}, Dirs: []string{"/data"}, BrokerID: 1,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, &store.Progress{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(true)
	c := clock.NewVirtual(time.UnixMilli(1_000_000))
	shown := clock.NewSkewed(c, 0, 1)
	wanted := make(chan store.TP, 16)
	const lag = 1000
	h := New(Config{Broker: 1, Store: s, Clock: shown, LagTimeMaxMs: lag, Wanted: func(tp store.TP, _ *replica.Replica) { wanted <- tp }})
	h.patience.max = time.Hour // by the clock that stands still
	var states []PartitionState
	for p := range int32(2) {
		st := state("t", p, 1, 0)
		st.ISR, st.Replicas = []int32{1, 2}, []int32{1, 2}
		states = append(states, st)
	}
	for _, err := range h.Apply(states) {
		if err != nil {
			t.Fatal(err)
		}
	}
	slow, quick := states[0].TP, states[1].TP
	for _, st := range states {
		r, _ := h.Replica(st.TP)
		bl := batch.NewBuilder()
		bl.Add(1000, nil, []byte("v"))
		b, _ := bl.Build()
		done := make(chan struct{})
		r.Append(&replica.Append{Batches: []batch.Batch{b}, Acks: 1, Done: func(commitlog.Appended) { close(done) }})
		<-done
	}
	tick := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if at, ok := c.Next(); ok && at.Sub(c.Now()) <= lag*time.Millisecond {
				break
			}
			if time.Now().After(end) {
				t.Fatal("nobody waits for the next tick")
			}
		}
		shown.Jump(jump)
		c.Advance(lag / 2 * time.Millisecond)
	}
	q, _ := h.Replica(quick)
	for range 4 {
		if err := q.FollowerFetched(core.Fetch{Broker: 2, Offset: 1, NowMs: clock.ElapsedMs(shown)}); err != nil {
			t.Fatal(err)
		}
		tick()
	}
	select {
	case tp := <-wanted:
		if tp != slow {
			t.Errorf("%s wants another in-sync set", tp)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody was proposed out")
	}
	r, _ := h.Replica(slow)
	if p, ok := r.Proposal(); !ok || len(p.ISR) != 1 || p.ISR[0].Broker != 1 {
		t.Errorf("proposal %+v, %v", p, ok)
	}
	if _, ok := q.Proposal(); ok {
		t.Error("who keeps up is proposed out")
	}
	h.Close()
	h.Stop(nil, false)
}
