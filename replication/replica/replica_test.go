package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/replication/core"
)

func TestAcks(t *testing.T) {
	l := &fakeLog{}
	r := leader(t, l, 1, 1)
	for i, acks := range []int16{0, 1, -1} {
		o, cancel := add(r, acks)
		want(t, "alone", o, fmt.Sprint(i))
		if cancel != nil {
			t.Error("nothing waits, and there is a cancel")
		}
	}
	if s, _ := r.State(-1); s.HighWatermark != 3 || s.LogEnd != 3 || !s.IsLeader {
		t.Errorf("state %+v", s)
	}

	l = &fakeLog{}
	r = leader(t, l, 1, 1, 2)
	one, _ := add(r, 1)
	all, _ := add(r, -1)
	late, cancel := add(r, -1)
	want(t, "acks=1", one, "0")
	want(t, "acks=all", all, "-")
	fetched(t, r, 2)
	want(t, "acks=all, fetched", all, "1")
	want(t, "acks=all, not fetched", late, "-")
	cancel()
	cancel()
	want(t, "cancelled", late, ErrTimeout.Error())
	fetched(t, r, 3)
	want(t, "cancelled, then committed", late, ErrTimeout.Error())
}

func TestCancelBeforeWritten(t *testing.T) {
	l := &fakeLog{held: true}
	r := leader(t, l, 1, 1, 2)
	o, cancel := add(r, -1)
	cancel()
	want(t, "still with the log", o, "-")
	l.release()
	want(t, "written", o, ErrTimeout.Error())
}

// TestDuplicate: the retry of a batch that is not committed yet waits as its original does.
func TestDuplicate(t *testing.T) {
	l := &fakeLog{}
	r := leader(t, l, 1, 1, 2)
	first, _ := add(r, -1)
	second, _ := add(r, -1)
	again := &outcome{}
	o := &op{r: r, term: r.view.Load().term, all: true, done: again.done}
	o.term.enter()
	o.written(commitlog.Appended{BaseOffset: 0, LastOffset: 0, Duplicate: true})
	want(t, "duplicate", again, "-")
	fetched(t, r, 1)
	want(t, "original", first, "0")
	want(t, "duplicate, committed", again, "0")
	want(t, "the next one", second, "-")
}

// TestGiveUp: who waits for the watermark is told to ask another, before this broker has heard that there is one; what is
// written stays, and counts once the follower has it.
func TestGiveUp(t *testing.T) {
	r := leader(t, &fakeLog{}, 1, 1, 2)
	first, _ := add(r, -1)
	r.GiveUp()
	want(t, "given up", first, ErrNotLeader.Error())
	second, _ := add(r, -1)
	fetched(t, r, 2)
	want(t, "the next one", second, "1")
}

func TestRefused(t *testing.T) {
	l := &fakeLog{}
	r := newReplica(Config{Self: 1, MinISR: 2}, l)
	o, _ := add(r, 1)
	want(t, "before any assignment", o, ErrNotLeader.Error())
	assign(t, r, 0, 1, 1)
	o, _ = add(r, -1)
	want(t, "acks=all under min.insync.replicas", o, ErrNotEnoughReplicas.Error())
	o, _ = add(r, 1)
	want(t, "acks=1 under min.insync.replicas", o, "0")
	assign(t, r, 1, 2, 1, 2)
	o, _ = add(r, 1)
	want(t, "follower", o, ErrNotLeader.Error())
	l.fail = commitlog.ErrOffline
	if err := r.Assign(core.Assignment{Leader: 1, LeaderEpoch: 2, PartitionEpoch: 2, ISR: []int32{1}, Replicas: []int32{1}}, 0); !errors.Is(err, commitlog.ErrOffline) {
		t.Errorf("assigned on a dead disk: %v", err)
	}
	o, _ = add(r, 1)
	want(t, "leader in name only", o, ErrNotLeader.Error())
	l.fail = nil
	assign(t, r, 2, 1, 1, 2)
	l.fail = commitlog.ErrOffline
	o, _ = add(r, -1)
	want(t, "dead disk", o, commitlog.ErrOffline.Error())
	if err := r.Assign(core.Assignment{Leader: 1, LeaderEpoch: 1, PartitionEpoch: 9}, 0); !errors.Is(err, ErrStaleEpoch) {
		t.Errorf("an old epoch: %v", err)
	}
	r.Stop()
	o, _ = add(r, 1)
	want(t, "stopped", o, ErrUnknownPartition.Error())
	if _, err := r.State(-1); !errors.Is(err, ErrUnknownPartition) {
		t.Errorf("state of a stopped replica: %v", err)
	}
	if err := r.Assign(core.Assignment{Leader: 1, LeaderEpoch: 9}, 0); !errors.Is(err, ErrUnknownPartition) {
		t.Errorf("a stopped replica was assigned: %v", err)
	}
}

// TestTermEnds: a term ends only when no append is on its way to the log; who waits for the watermark waits on while
// this broker goes on leading, and learns of it when it does not.
func TestTermEnds(t *testing.T) {
	for _, c := range []struct {
		name       string
		leader     int32
		epoch      int32
		waited     string // the two appends, once the assignment was taken
		wayThere   string
		afterFetch [2]string // and once the follower has the first of them in the new term
	}{
		{"leads on", 1, 1, "-", "-", [2]string{"0", "-"}},
		{"another leads", 2, 1, ErrNotLeader.Error(), ErrNotLeader.Error(), [2]string{}},
		{"another may have led", 1, 2, ErrNotLeader.Error(), ErrNotLeader.Error(), [2]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &fakeLog{}
			r := leader(t, l, 1, 1, 2)
			waits, _ := add(r, -1)
			l.mu.Lock()
			l.held = true
			l.mu.Unlock()
			way, _ := add(r, -1)
			done := make(chan error)
			go func() {
				done <- r.Assign(core.Assignment{Leader: c.leader, LeaderEpoch: c.epoch, PartitionEpoch: 1, ISR: []int32{1, 2}, Replicas: []int32{1, 2}}, 0)
			}()
			for term := r.view.Load().term; term.enter(); term.leave() {
				runtime.Gosched()
			}
			late, _ := add(r, 1)
			want(t, "between two terms", late, ErrNextTerm.Error())
			l.mu.Lock()
			taken := l.taken
			l.mu.Unlock()
			if taken != 0 {
				t.Error("the epoch began with an append of the former one on its way")
			}
			l.release()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			want(t, "waited", waits, c.waited)
			want(t, "was on its way", way, c.wayThere)
			if c.leader != 1 {
				return
			}
			next, _ := add(r, 1)
			want(t, "in the next term", next, "2")
			if c.waited == "-" {
				fetched(t, r, 1)
				want(t, "waited", waits, c.afterFetch[0])
				want(t, "was on its way", way, c.afterFetch[1])
			}
		})
	}
}

func TestEpochsAndReads(t *testing.T) {
	l := &fakeLog{start: 2, end: 10}
	r := newReplica(Config{Self: 1, MinISR: 1, HighWatermark: 99}, l)
	assign(t, r, 5, 1, 1, 2)
	for epoch, want := range map[int32]error{-1: nil, -5: nil, 5: nil, 4: ErrFencedEpoch, 6: ErrUnknownEpoch} {
		if _, err := r.State(epoch); !errors.Is(err, want) {
			t.Errorf("epoch %d: %v", epoch, err)
		}
		if _, _, err := r.Read(5, 1, LogEnd, epoch, true); !errors.Is(err, want) {
			t.Errorf("read with epoch %d: %v", epoch, err)
		}
	}
	add(r, 1)
	for iso, limit := range map[Isolation]int64{ReadUncommitted: 10, ReadCommitted: 10, LogEnd: 11} {
		if _, s, err := r.Read(5, 1, iso, -1, true); err != nil || l.limit != limit || s.LogStart != 2 {
			t.Errorf("isolation %d: limit %d, %+v, %v", iso, l.limit, s, err)
		}
	}
	if _, s, err := r.Read(1, 1, LogEnd, -1, true); !errors.Is(err, commitlog.ErrOffsetOutOfRange) || s.LogStart != 2 {
		t.Errorf("below the start: %+v, %v", s, err)
	}
	l.start = 11 // trimmed past the watermark
	if s, _ := r.State(-1); s.HighWatermark != 11 || s.LogStart != 11 {
		t.Errorf("after a trim: %+v", s)
	}
	assign(t, r, 6, 2, 1, 2)
	if _, s, err := r.Read(11, 1, LogEnd, -1, true); !errors.Is(err, ErrNotLeader) || s.Leader != 2 || s.LeaderEpoch != 6 {
		t.Errorf("follower: %+v, %v", s, err)
	}
}

func TestWatch(t *testing.T) {
	l := &fakeLog{}
	r := leader(t, l, 1, 1, 2)
	w := NewWaiter()
	signalled := func() bool {
		select {
		case <-w.C:
			return true
		default:
			return false
		}
	}
	r.Watch(w)
	r.Watch(w)
	add(r, 1)
	add(r, 1)
	if !signalled() || signalled() {
		t.Error("two appends are one signal")
	}
	for _, e := range []struct {
		what string
		do   func()
	}{
		{"watermark", func() { fetched(t, r, 1) }},
		{"trim", r.Advance},
		{"config", func() { r.SetConfig(commitlog.Config{}, 2) }},
		{"leadership", func() { assign(t, r, 1, 2, 1, 2) }},
		{"stop", r.Stop},
	} {
		if e.do(); !signalled() {
			t.Errorf("%s: no signal", e.what)
		}
	}
	r.Unwatch(w)
	r.Unwatch(w)
	r.signal(false)
	if signalled() {
		t.Error("signal after Unwatch")
	}
}

// TestNoLostWakeup: whoever watches, looks, and then waits, sees every record in the end.
func TestNoLostWakeup(t *testing.T) {
	l := &fakeLog{}
	r := leader(t, l, 1, 1)
	const records = 2000
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			w := NewWaiter()
			r.Watch(w)
			defer r.Unwatch(w)
			for {
				if s, _ := r.State(-1); s.HighWatermark == records {
					return
				}
				<-w.C
			}
		})
	}
	for range records {
		add(r, 1)
	}
	readers.Wait()
}

// TestManyAppendersAndTerms: each append is answered once, and the log's epochs never go back, whatever the
// controller says meanwhile.
func TestManyAppendersAndTerms(t *testing.T) {
	l := &fakeLog{}
	r := leader(t, l, 1, 1)
	var calls, asked atomic.Int64
	var appenders sync.WaitGroup
	for i := range 4 {
		appenders.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2000 {
				asked.Add(1)
				cancel := r.Append(&Append{Batches: []batch.Batch{nil}, Acks: int16(rng.IntN(3)) - 1, Done: func(a commitlog.Appended) {
					calls.Add(1)
					if a.Err != nil && !errors.Is(a.Err, ErrNotLeader) && !errors.Is(a.Err, ErrTimeout) {
						t.Error(a.Err)
					}
				}})
				if cancel != nil && rng.IntN(2) == 0 {
					cancel()
				}
			}
		})
	}
	for epoch := int32(1); epoch < 200; epoch++ {
		isr := []int32{1, 2}[:1+epoch%2]
		assign(t, r, epoch, 1, isr...)
	}
	appenders.Wait()
	assign(t, r, 1000, 2, 1, 2)
	if calls.Load() != asked.Load() {
		t.Errorf("%d answers to %d appends", calls.Load(), asked.Load())
	}
	last := int32(0)
	for i, e := range l.epochs {
		if e < last {
			t.Fatalf("record %d has epoch %d after %d", i, e, last)
		}
		last = e
	}
}

func TestAllocations(t *testing.T) {
	l := &fakeLog{}
	r := leader(t, l, 1, 1)
	a := &Append{Batches: []batch.Batch{nil}, Acks: -1, Done: func(commitlog.Appended) {}}
	l.epochs = make([]int32, 0, 1<<16)
	if n := testing.AllocsPerRun(1000, func() { r.Append(a) }); n > 4 { // two are the fake log's
		t.Errorf("an append allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { r.State(-1) }); n > 0 {
		t.Errorf("a look allocates %v times", n)
	}
}

// TestAppendUnbroken: who keeps state of a leadership writes on when this broker is given the next epoch, and not into
// another leadership.
func TestAppendUnbroken(t *testing.T) {
	l := &fakeLog{}
	r := leader(t, l, 1, 1)
	since := func(epoch int32) *outcome {
		o := &outcome{}
		r.Append(&Append{Batches: []batch.Batch{nil}, Acks: 1, Unbroken: true, LedSince: epoch, Done: o.done})
		return o
	}
	led := func(want int32) {
		t.Helper()
		if st, _ := r.State(-1); st.LedSince != want {
			t.Errorf("led since %d, want %d", st.LedSince, want)
		}
	}
	led(0)
	want(t, "in its leadership", since(0), "0")
	assign(t, r, 1, 1, 1)
	assign(t, r, 2, 1, 1)
	led(0)
	want(t, "two terms later", since(0), "1")
	want(t, "in a leadership that never began", since(2), ErrNotLeader.Error())
	assign(t, r, 4, 1, 1)
	led(4)
	want(t, "after a gap", since(0), ErrNotLeader.Error())
	want(t, "in the new leadership", since(4), "2")
	assign(t, r, 5, 2, 1, 2)
	led(-1)
	want(t, "without leadership", since(4), ErrNotLeader.Error())
	assign(t, r, 6, 1, 1)
	led(6)
	want(t, "after another led", since(4), ErrNotLeader.Error())
	l.fail = commitlog.ErrOffline
	if err := r.Assign(core.Assignment{Leader: 1, LeaderEpoch: 7, PartitionEpoch: 7, ISR: []int32{1}, Replicas: []int32{1}}, 0); err == nil {
		t.Error("assigned on a dead disk")
	}
	led(-1)
	l.fail = nil
	assign(t, r, 8, 1, 1)
	led(8)
}

// TestFetchMeetsNextEpoch: a follower's fetch that began before the leader got its next epoch is refused as one that
// comes after.
func TestFetchMeetsNextEpoch(t *testing.T) {
	r := leader(t, &fakeLog{}, 1, 1, 2)
	r.mu.Lock() // as Assign does it, before readers see it
	_, err := r.core.Assign(core.Assignment{Leader: 1, LeaderEpoch: 1, PartitionEpoch: 1, ISR: []int32{1, 2}, Replicas: []int32{1, 2}}, 0)
	r.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.FollowerFetched(core.Fetch{Broker: 2, LeaderEpoch: 0}); !errors.Is(err, ErrFencedEpoch) {
		t.Errorf("a fetch of the epoch before: %v", err)
	}
}

// TestUnsettled: a new leader says that its high watermark may lie below what consumers were told (KIP-207), until its
// followers have caught up with the begin of its term.
func TestUnsettled(t *testing.T) {
	l := &fakeLog{end: 5}
	r := leader(t, l, 1, 1, 2)
	look := func(want bool) {
		t.Helper()
		if st, _ := r.State(-1); st.Unsettled != want {
			t.Errorf("unsettled %v at high watermark %d", st.Unsettled, st.HighWatermark)
		}
	}
	look(true)
	fetched(t, r, 4)
	look(true)
	fetched(t, r, 5)
	look(false)
	add(r, 1)
	look(false)
	assign(t, r, 1, 2, 2)
	look(false)
}

// TestLeaderWithoutLog: a leader whose log refuses the epoch leads nothing, and follows nobody, least of all itself.
func TestLeaderWithoutLog(t *testing.T) {
	l := &fakeLog{fail: commitlog.ErrOffline}
	r := newReplica(Config{Self: 1, MinISR: 1}, l)
	if err := r.Assign(core.Assignment{Leader: 1, ISR: []int32{1}, Replicas: []int32{1, 2}}, 0); !errors.Is(err, commitlog.ErrOffline) {
		t.Fatal(err)
	}
	if at, follows := r.Position(); follows {
		t.Errorf("it follows %+v", at)
	}
}
