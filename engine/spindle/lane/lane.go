// Package lane decides who may read cold data from one device, how much at a time, and what of it may leave the
// page cache again.
//
// A Lane is a pure state machine: it has no clock, no goroutine and no file. Its owner reports what readers want
// (Ask), what they have taken (Took) and which runs are done (Done), each with the time, and then collects what
// is to be done by Step: runs to read, asks to let go on, ranges to drop. Package spindle drives it over
// real files, its tests over a modelled disk in virtual time.
//
// # What it does
//
//   - A stream is one reader's way through one file. Asks are joined to streams by their positions.
//   - A stream is read ahead in runs: short at first, since nobody knows whether a reader goes on, then long.
//     Streams take turns, a run each; those with a waiting reader come before those that only read ahead.
//   - What is read ahead of all readers together stays within Params.MemoryBytes. A reader that takes nothing loses its window
//     before another one has to wait for it.
//   - While somebody else writes to the device (Busy) the runs leave it Params.SharePercent of the time.
//   - What was read is dropped behind its readers, unless another stream of the file comes close behind.
//
// A Lane is not safe for concurrent use.
package lane

import (
	"cmp"
	"slices"
	"time"
)

// Params shape a lane. Sizes are bytes. A zero Params is not valid: start from the defaults of package spindle.
type Params struct {
	RunBytes     int64         // one run of a stream that reads in order
	FirstBytes   int64         // the first run of a stream
	MemoryBytes  int64         // all that was read and not dropped, of all streams
	Depth        int           // runs under way at once: 1 for one actuator; as many again may wait for their end (Sent)
	SharePercent int           // of the device's time that runs may take while others write; 100: all
	TurnMax      time.Duration // a waiting reader's turn should come within it: runs get shorter for it
	IdleAfter    time.Duration // a stream that nobody reads from is forgotten
	BehindBytes  int64         // how far a reader may go back without being taken for another one
	CloseBytes   int64         // a reader within this distance behind another one finds the pages there
	DropBytes    int64         // pages are dropped in pieces of at least this size
	StreamsMax   int           // the stream that was idle longest makes room
}

// Names of what the owner hands out: files by its own number, asks by its own number, runs by ours.
type (
	FileID uint64
	AskID  uint64
	RunID  uint64
)

// Run is one long read that is to be made now: n bytes of a file from Pos. It ends with Done.
type Run struct {
	ID     RunID
	File   FileID
	Pos, N int64
	// Gentle: others write to the device. It is to be read in parts, each waited for before the next is asked for: when its
	// queue is empty for a moment, what waits there for reads to end (a journal's commit, and who appends behind it) gets its turn.
	Gentle bool
	// Background: not a read but leave for a background reader, whose ask is Ask, to make one of its own.
	Background bool
	Ask        AskID
}

// Drop is a range that no reader needs any more.
type Drop struct {
	File   FileID
	Pos, N int64
}

// Output is what there is to do. The slices are valid until the next Step.
type Output struct {
	Runs  []Run
	Wake  []AskID // these may read: what they asked for is there, or reading it has failed
	Drops []Drop
	Gone  []FileID // of which the lane knows nothing any more
	// Next is when Step should be called though nothing was reported; 0: never.
	Next time.Duration
}

// Stats is a lane's state and its counts since the start.
type Stats struct {
	Streams, Waiting, Flying           int
	HeldBytes                          int64
	Runs, RunBytes, Asks, DroppedBytes int64
	Reclaimed                          int64 // windows that were given up for want of memory
	BackgroundRuns                     int64
	BusyTime                           time.Duration // the device's time that runs took
}

// Lane is the cold-read schedule of one device.
type Lane struct {
	p       Params
	files   map[FileID]*file
	streams int
	demand  queue // streams with a waiting reader
	ahead   queue // streams whose window is running low
	back    []background
	flying  map[RunID]*flight
	lastRun RunID
	// heldBytes is what was read and not dropped, flyBytes what is being read.
	heldBytes, flyBytes int64
	lastDone            time.Duration // when a run ended last
	freeAt              time.Duration // no run before
	busyUntil           time.Duration // others write until then, as far as is known
	backAt              time.Duration // when a background reader last had its turn
	expireAt            time.Duration // no stream is to be forgotten before; 0: there is none
	rate                float64       // bytes a second of the last runs
	out                 Output
	stats               Stats
}

type background struct {
	ask AskID
	n   int64
	at  time.Duration
}

type flight struct {
	run   Run
	s     *stream
	began time.Duration
	void  bool // the file was changed meanwhile
	sent  bool // all of it is on its way: the next run may begin
}

const (
	// busyFor is how long after a write others count as using the device: the kernel writes back much later.
	busyFor = 5 * time.Second
	// backgroundMax is how long a background reader may be kept waiting by others.
	backgroundMax = 5 * time.Second
	// growth is the factor from one run of a stream to its next: who has come back once will go on.
	growth = 8
)

// New returns an idle lane.
func New(p Params) *Lane {
	p.FirstBytes = max(p.FirstBytes, 4<<10)
	p.RunBytes = max(p.RunBytes, p.FirstBytes)
	p.Depth = max(p.Depth, 1)
	p.StreamsMax = max(p.StreamsMax, 1)
	if p.SharePercent < 1 || p.SharePercent > 100 {
		p.SharePercent = 100
	}
	return &Lane{p: p, files: map[FileID]*file{}, flying: map[RunID]*flight{}}
}

// Covers reports whether the lane has read [pos, pos+n) and not dropped it.
func (l *Lane) Covers(id FileID, pos, n int64) bool {
	f := l.files[id]
	return f != nil && f.held.covers(pos, pos+n)
}

// Knows reports whether the lane has anything of the file: a stream, or bytes that it has read.
func (l *Lane) Knows(id FileID) bool { return l.files[id] != nil }

// Expects reports whether a stream of the file has come, or is being read ahead, to about pos.
func (l *Lane) Expects(id FileID, pos int64) bool {
	f := l.files[id]
	if f == nil {
		return false
	}
	s := f.find(pos, l.p.BehindBytes, l.p.FirstBytes)
	return s != nil && s.runBytes > l.p.FirstBytes
}

// Ask says that a reader wants [pos, pos+n) of a file, which is not in the page cache, and waits for it. No run
// reads at or above limit (the file's end, or the start of what was written lately and so is in the
// cache). True: it need not wait, and the ask is forgotten.
func (l *Lane) Ask(now time.Duration, ask AskID, id FileID, pos, n, limit int64) bool {
	f := l.file(id)
	end := min(pos+n, limit)
	if pos >= end || f.held.covers(pos, end) {
		l.tidy(f)
		return true
	}
	l.stats.Asks++
	s := f.find(pos, l.p.BehindBytes, l.p.FirstBytes)
	if s == nil {
		s = l.newStream(now, f, pos)
	}
	s.used, s.limit = now, limit
	s.asks = append(s.asks, request{ask, pos, end})
	l.want(s)
	return false
}

// Cancel takes back an ask: its reader waits no longer.
func (l *Lane) Cancel(ask AskID) {
	for _, f := range l.files {
		for _, s := range f.streams {
			s.asks = slices.DeleteFunc(s.asks, func(r request) bool { return r.id == ask })
		}
	}
	l.back = slices.DeleteFunc(l.back, func(b background) bool { return b.ask == ask })
}

// AskBackground says that a reader without haste wants to read n bytes by itself. It is answered by a Run with
// Background set, which Done ends.
func (l *Lane) AskBackground(now time.Duration, ask AskID, n int64) {
	l.back = append(l.back, background{ask, n, now})
}

// Took says that a reader has been given [pos, pos+n), from the lane's runs or because it was in the cache
// anyway. A file that the lane does not know is passed over.
func (l *Lane) Took(now time.Duration, id FileID, pos, n int64) {
	f := l.files[id]
	if f == nil {
		return
	}
	s := f.find(pos, l.p.BehindBytes, l.p.FirstBytes)
	if s == nil {
		s = l.newStream(now, f, pos) // one that reads along in the cache: what it is about to read stays
	}
	s.used = now
	s.next = max(s.next, pos+n)
	s.have = max(s.have, s.next)
	s.taken = true
	l.want(s)
	l.dropBehind(f, l.keeps())
}

// Done says that a run has ended with its first got bytes read. Fewer than asked for: the file ended, or could
// not be read; those who wait for more find out by themselves. False: what was read is of no use any more.
func (l *Lane) Done(now time.Duration, id RunID, got int64) bool {
	fl := l.flying[id]
	if fl == nil {
		return false
	}
	delete(l.flying, id)
	took := max(now-fl.began, 0)
	if l.p.Depth == 1 {
		took = max(now-max(fl.began, l.lastDone), 0) // what it waited for the run before it is not its own
	}
	l.lastDone = now
	l.flyBytes -= fl.run.N
	l.stats.BusyTime += took
	if l.p.SharePercent < 100 && now < l.busyUntil && l.p.Depth == 1 {
		l.freeAt = now + took*time.Duration(100-l.p.SharePercent)/time.Duration(l.p.SharePercent)
	}
	if fl.run.Background {
		return false
	}
	if took > 0 && got > 0 {
		rate := float64(got) / took.Seconds()
		if l.rate > 0 {
			rate = (3*l.rate + rate) / 4
		}
		l.rate = rate
	}
	s := fl.s
	s.flying = false
	f := l.files[fl.run.File]
	if f == nil || f != s.file { // forgotten meanwhile
		return false
	}
	if fl.void {
		got = 0
	}
	l.heldBytes += f.held.add(fl.run.Pos, fl.run.Pos+got)
	l.stats.RunBytes += got
	s.have = max(s.have, fl.run.Pos+got)
	s.used = now
	for _, other := range f.streams {
		other.wake(l, fl.run.Pos, other == s && got < fl.run.N)
		l.want(other) // it may have waited for this very run
	}
	l.tidy(f)
	return got > 0
}

// Sent says that all of a run, not a gentle one, is on its way to the device, and the owner only waits for it. The next run may be
// made ready meanwhile, so that the device does not run dry between two.
func (l *Lane) Sent(id RunID) {
	if fl := l.flying[id]; fl != nil {
		fl.sent = true
	}
}

// free says whether one more run may begin.
func (l *Lane) free() bool {
	n := 0
	for _, fl := range l.flying {
		if !fl.sent {
			n++
		}
	}
	return n < l.p.Depth && len(l.flying) < 2*l.p.Depth
}

// Busy says that somebody else writes to the device.
func (l *Lane) Busy(now time.Duration) { l.busyUntil = now + busyFor }

// Forget drops all knowledge of a file from pos on: it was cut there, overwritten or (0) removed. Who waits is woken.
func (l *Lane) Forget(id FileID, pos int64) {
	f := l.files[id]
	if f == nil {
		return
	}
	l.heldBytes -= f.held.remove(pos, maxPos)
	for _, fl := range l.flying {
		fl.void = fl.void || fl.s != nil && fl.s.file == f && fl.run.Pos+fl.run.N > pos
	}
	for _, s := range slices.Clone(f.streams) {
		if pos == 0 || s.have > pos {
			l.forget(s)
		}
	}
	l.tidy(f)
}

// Step collects what there is to do at now.
func (l *Lane) Step(now time.Duration) Output {
	l.expire(now)
	for now >= l.freeAt && l.free() {
		if !l.grant(now) {
			break
		}
	}
	out := l.out
	out.Next = l.nextStep(now)
	l.out = Output{}
	return out
}

// Stats tells of the lane.
func (l *Lane) Stats() Stats {
	st := l.stats
	st.Streams, st.Flying, st.HeldBytes = l.streams, len(l.flying), l.heldBytes
	st.Waiting = len(l.back)
	for _, f := range l.files {
		for _, s := range f.streams {
			st.Waiting += len(s.asks)
		}
	}
	return st
}

func (l *Lane) nextStep(now time.Duration) time.Duration {
	var next time.Duration
	sooner := func(t time.Duration) {
		if next == 0 || t < next {
			next = t
		}
	}
	if l.freeAt > now && (l.demand.len() > 0 || l.ahead.len() > 0 || len(l.back) > 0) {
		sooner(l.freeAt)
	}
	if l.expireAt > 0 {
		sooner(l.expireAt)
	}
	return next
}

// expire forgets streams that nobody reads from.
func (l *Lane) expire(now time.Duration) {
	if l.expireAt == 0 || now < l.expireAt {
		return
	}
	l.expireAt = 0
	for _, f := range l.sorted() {
		for _, s := range slices.Clone(f.streams) {
			at := s.used + l.p.IdleAfter
			if len(s.asks) > 0 || s.flying {
				at = now + l.p.IdleAfter // not idle: looked at again
			}
			if now >= at {
				l.forget(s)
			} else if l.expireAt == 0 || at < l.expireAt {
				l.expireAt = at
			}
		}
		l.tidy(f)
	}
}

// sorted is the files in an order that does not depend on the map.
func (l *Lane) sorted() []*file {
	fs := make([]*file, 0, len(l.files))
	for _, f := range l.files {
		fs = append(fs, f)
	}
	slices.SortFunc(fs, func(a, b *file) int { return cmp.Compare(a.id, b.id) })
	return fs
}
