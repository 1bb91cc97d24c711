// Package spindle keeps one device sequential: it is the schedule between those who read, write and delete on it.
//
// A Set is a disk.FS around another one. It serves the data directories of a broker, those on one device as one
// Spindle, and what it adds is seen only by the .log files in them:
//
//   - Readers that have fallen out of the page cache take turns (ForReaders; package lane decides, this one acts). Who
//     reads what is in the cache, and above all what was just written, is let through.
//   - Readers without haste, such as a scrub, read in long runs when nobody else wants to, and leave nothing behind in
//     the page cache (Background).
//   - Large files are cut in steps before they are removed (Set.Discard).
//   - The kernel's budget for dirty pages is watched (JudgeDirty).
//
// # What may run at once
//
// A Set and its files are safe for concurrent use, as far as those below are. A wait for the lane blocks a goroutine
// and no thread, and ends after WaitMax at the latest: then the reader goes to the disk by itself, as all did
// without a lane.
//
// # Errors
//
// Those of the FS below. The lane has none of its own: whoever waits for a run that fails reads by himself, and
// gets the error.
package spindle

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"platter/engine/spindle/lane"
	"platter/io/clock"
	"platter/io/disk"
)

// WaitMax bounds one wait for the lane.
const WaitMax = 30 * time.Second

// joinMax bounds the wait of a look at a batch where a reader is being read ahead for. It is mostly his own, before he asks for
// the range: if it went to the disk by itself while others have their turns it would cost each of them a seek.
const joinMax = 10 * time.Second

// Spindle is the schedule of one device. Safe for concurrent use.
type Spindle struct {
	name  string
	p     Params
	fs    disk.FS
	clock clock.Clock
	epoch time.Duration // the lane's time starts here

	written atomic.Int64 // bytes, since the start
	wroteAt atomic.Int64 // when last, in the lane's time
	begun   atomic.Int64 // appends
	ended   atomic.Int64

	cutting chan struct{} // holds one while a large file is removed
	cuts    atomic.Int64
	behind  chan struct{} // holds one while a run is written behind

	gaveUp      atomic.Int64
	behindBytes atomic.Int64
	verdict     atomic.Pointer[judged]
	warned      atomic.Bool

	mu      sync.Mutex
	lane    *lane.Lane
	lastAsk lane.AskID
	waits   map[lane.AskID]chan struct{}
	turns   map[lane.AskID]*lane.RunID // of background readers that wait, and the runs that they are given
	files   map[lane.FileID]*tracked   // those that the lane knows
	timerAt time.Duration
	stop    func() bool // of the timer
	closed  bool
}

func newSpindle(name string, p Params, fs disk.FS, c clock.Clock) *Spindle {
	return &Spindle{
		name: name, p: p, fs: fs, clock: c, epoch: clock.Elapsed(c), lane: lane.New(p.Lane), cutting: make(chan struct{}, 1), behind: make(chan struct{}, 1),
		waits: map[lane.AskID]chan struct{}{}, turns: map[lane.AskID]*lane.RunID{}, files: map[lane.FileID]*tracked{},
	}
}

// now is the lane's time: above 0, since 0 is never.
func (sp *Spindle) now() time.Duration { return clock.Elapsed(sp.clock) - sp.epoch + 1 }

// act tells the lane of something and does what follows from it.
func (sp *Spindle) act(tell func(now time.Duration)) {
	sp.mu.Lock()
	now := sp.now()
	if at := time.Duration(sp.wroteAt.Load()); at > 0 {
		sp.lane.Busy(min(at, now))
	}
	if tell != nil {
		tell(now)
	}
	out := sp.lane.Step(now)
	for _, id := range out.Wake {
		sp.wake(id)
	}
	for _, r := range out.Runs {
		sp.start(r)
	}
	drops := make([]dropped, 0, len(out.Drops))
	for _, d := range out.Drops {
		t := sp.files[d.File]
		switch {
		case t == nil:
		case sp.p.Buffers:
			t.leave(d.Pos, d.Pos+d.N, false)
		default:
			drops = append(drops, dropped{t, d.Pos, d.N})
		}
	}
	var gone []*tracked
	for _, id := range out.Gone {
		if t := sp.files[id]; t != nil && !sp.lane.Knows(id) {
			delete(sp.files, id)
			t.known.Store(false)
			t.leave(0, math.MaxInt64, true)
			gone = append(gone, t)
		}
	}
	sp.setTimer(now, out.Next)
	sp.mu.Unlock()
	for _, d := range drops {
		d.file.drop(sp.fs, d.pos, d.n)
	}
	for _, t := range gone {
		t.set.release(t)
	}
}

type dropped struct {
	file   *tracked
	pos, n int64
}

func (sp *Spindle) wake(id lane.AskID) {
	if w := sp.waits[id]; w != nil {
		delete(sp.waits, id)
		close(w)
	}
}

// start begins a run; mu is held.
func (sp *Spindle) start(r lane.Run) {
	if r.Background {
		if given := sp.turns[r.Ask]; given != nil {
			*given = r.ID // who asked for it ends it
			sp.wake(r.Ask)
			return
		}
		go sp.done(r.ID) // he has given up meanwhile
		return
	}
	t := sp.files[r.File]
	go func() {
		var chunks []*chunk
		got := int64(0)
		if t != nil {
			chunks, got = sp.read(t, r, func() {
				sp.act(func(time.Duration) { sp.lane.Sent(r.ID) })
			})
		}
		sp.act(func(now time.Duration) {
			if sp.lane.Done(now, r.ID, got) {
				t.keep(chunks)
				return
			}
			for _, c := range chunks {
				c.free()
			}
		})
	}()
}

func (sp *Spindle) done(id lane.RunID) {
	sp.act(func(now time.Duration) { sp.lane.Done(now, id, 0) })
}

// setTimer sees to it that the lane is asked again in time; mu is held.
func (sp *Spindle) setTimer(now, next time.Duration) {
	if next == sp.timerAt || sp.closed {
		return
	}
	if sp.stop != nil {
		sp.stop()
		sp.stop = nil
	}
	sp.timerAt = next
	if next > 0 {
		sp.stop = sp.clock.AfterFunc(max(next-now, time.Millisecond), func() {
			sp.mu.Lock()
			sp.timerAt, sp.stop = 0, nil
			sp.mu.Unlock()
			sp.act(nil)
		})
	}
}

// close stops the timer; who waits goes on by himself.
func (sp *Spindle) close() {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.closed = true
	if sp.stop != nil {
		sp.stop()
	}
	for id := range sp.waits {
		sp.wake(id)
	}
}

// admit returns once [pos, pos+n) of t may be read: it is in the cache, the lane has read it, or has said that the reader
// must do so himself. join: only a stream that is read ahead for anyway is waited for.
func (sp *Spindle) admit(t *tracked, f disk.File, pos, n int64, join bool) {
	sp.mu.Lock()
	done := sp.closed || sp.lane.Covers(t.id, pos, n) || join && !sp.lane.Expects(t.id, pos)
	sp.mu.Unlock()
	if done || isResident(f, pos, n) {
		return
	}
	limit, err := t.limit(f)
	if err != nil {
		return // the read will tell
	}
	var wait chan struct{}
	var id lane.AskID
	sp.act(func(now time.Duration) {
		sp.lastAsk++
		id = sp.lastAsk
		sp.files[t.id] = t
		t.known.Store(true)
		wait = make(chan struct{})
		sp.waits[id] = wait
		if sp.lane.Ask(now, id, t.id, pos, n, limit) {
			sp.wake(id)
		}
	})
	if join {
		sp.await(id, wait, joinMax)
	} else {
		sp.await(id, wait, WaitMax)
	}
}

// await waits for an ask's turn, at most most.
func (sp *Spindle) await(id lane.AskID, wait chan struct{}, most time.Duration) {
	select {
	case <-wait:
		return
	default:
	}
	over := make(chan struct{})
	stop := sp.clock.AfterFunc(most, func() { close(over) })
	defer stop()
	select {
	case <-wait:
	case <-over:
		sp.gaveUp.Add(1)
		sp.act(func(time.Duration) {
			delete(sp.waits, id)
			sp.lane.Cancel(id)
		})
	}
}

// took tells the lane how far a reader has come.
func (sp *Spindle) took(t *tracked, pos, n int64) {
	if n > 0 && t.known.Load() {
		sp.act(func(now time.Duration) { sp.lane.Took(now, t.id, pos, n) })
	}
}

// forget tells the lane that a file was cut at pos, or is gone.
func (sp *Spindle) forget(t *tracked, pos int64) {
	if t.known.Load() {
		sp.act(func(time.Duration) {
			sp.lane.Forget(t.id, pos)
			t.leave(pos, math.MaxInt64, true)
		})
	}
}

// Stats is a device's name and what was done for it.
type Stats struct {
	Name string
	lane.Stats
	GaveUp           int64 // waits that lasted for too long: their readers went to the device by themselves
	Cuts             int64 // steps in which large files were removed
	WriteBehindBytes int64
	WrittenBytes     int64 // appended to .log files
	ActiveFiles      int   // that were appended to lately
	Dirty            DirtyVerdict
	Budget           DirtyBudget
}

// Stats tells of the spindle.
func (sp *Spindle) Stats() Stats {
	sp.mu.Lock()
	st := Stats{Name: sp.name, Stats: sp.lane.Stats()}
	sp.mu.Unlock()
	if j := sp.verdict.Load(); j != nil {
		st.Budget, st.Dirty = j.budget, j.verdict
	}
	st.GaveUp = sp.gaveUp.Load()
	st.Cuts, st.WriteBehindBytes, st.WrittenBytes = sp.cuts.Load(), sp.behindBytes.Load(), sp.written.Load()
	return st
}
