package replica

import (
	"fmt"
	"sync"
	"testing"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/replication/core"
)

// fakeLog is a log in memory in which each append has one record. While held it takes appends without
// answering them.
type fakeLog struct {
	mu     sync.Mutex
	start  int64
	end    int64
	held   bool
	queue  []*commitlog.Append
	epochs []int32 // of each record
	fail   error   // what the next appends get
	limit  int64   // of the last Read
	taken  int32   // the newest assigned epoch
}

func (l *fakeLog) Enqueue(a *commitlog.Append) {
	l.mu.Lock()
	l.queue = append(l.queue, a)
	held := l.held
	l.mu.Unlock()
	if !held {
		l.work()
	}
}

// work answers what is queued, without the lock, as the real one does.
func (l *fakeLog) work() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.mu.Unlock()
			return
		}
		a := l.queue[0]
		l.queue = l.queue[1:]
		out := commitlog.Appended{BaseOffset: l.end, LastOffset: l.end, LogAppendTimeMs: -1, LogStartOffset: l.start, Err: l.fail}
		if l.fail == nil {
			l.end++
			l.epochs = append(l.epochs, a.LeaderEpoch)
		}
		l.mu.Unlock()
		a.Done(out)
	}
}

func (l *fakeLog) release() {
	l.mu.Lock()
	l.held = false
	l.mu.Unlock()
	l.work()
}

func (l *fakeLog) Read(offset, maxBytes, limit int64, atLeastOne bool) (commitlog.Read, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = limit
	if offset < l.start || offset > l.end {
		return commitlog.Read{}, commitlog.ErrOffsetOutOfRange
	}
	return commitlog.Read{NextOffset: offset}, nil
}

func (l *fakeLog) Ends() commitlog.Ends {
	l.mu.Lock()
	defer l.mu.Unlock()
	return commitlog.Ends{Start: l.start, Written: l.end, Durable: l.end}
}

func (l *fakeLog) AssignEpoch(epoch int32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.taken = epoch
	return nil
}

func (l *fakeLog) SetConfig(commitlog.Config) {}

func (l *fakeLog) EpochAt(int64) int32                      { return 0 }
func (l *fakeLog) EndOffsetForEpoch(e int32) (int32, int64) { return e, l.Ends().Written }
func (l *fakeLog) TrimTo(int64) error                       { return nil }
func (l *fakeLog) TruncateTo(int64) error                   { return nil }
func (l *fakeLog) TruncateFully(int64) error                { return nil }

// leader makes broker 1 the leader with this in-sync set.
func leader(t *testing.T, l *fakeLog, minISR int, isr ...int32) *Replica {
	t.Helper()
	r := newReplica(Config{Self: 1, MinISR: minISR}, l)
	assign(t, r, 0, 1, isr...)
	return r
}

func assign(t *testing.T, r *Replica, epoch, to int32, isr ...int32) {
	t.Helper()
	err := r.Assign(core.Assignment{Leader: to, LeaderEpoch: epoch, PartitionEpoch: epoch, ISR: isr, Replicas: []int32{1, 2}}, 0)
	if err != nil {
		t.Fatal(err)
	}
}

// fetched is what the follower's fetch does to the core.
func fetched(t *testing.T, r *Replica, offset int64) {
	t.Helper()
	r.mu.Lock()
	w, err := r.core.Fetched(core.Fetch{Broker: 2, LeaderEpoch: r.core.LeaderEpoch(), Offset: offset})
	ready := r.settle(w)
	r.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	finish(ready)
	r.signal(false)
}

// outcome is what an append came to: "-" while it is under way.
type outcome struct {
	mu    sync.Mutex
	calls int
	a     commitlog.Appended
}

func (o *outcome) done(a commitlog.Appended) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	o.a = a
}

func (o *outcome) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.calls == 0:
		return "-"
	case o.calls > 1:
		return fmt.Sprintf("%d calls", o.calls)
	case o.a.Err != nil:
		return o.a.Err.Error()
	}
	return fmt.Sprint(o.a.BaseOffset)
}

func add(r *Replica, acks int16) (*outcome, func()) {
	o := &outcome{}
	return o, r.Append(&Append{Batches: []batch.Batch{nil}, Acks: acks, Done: o.done})
}

func want(t *testing.T, what string, got fmt.Stringer, want string) {
	t.Helper()
	if got.String() != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}
