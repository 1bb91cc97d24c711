package lane

import "time"

// grant gives the device to the next in turn; false: nobody may have it now.
func (l *Lane) grant(now time.Duration) bool {
	if len(l.back) > 0 && now-max(l.backAt, l.back[0].at) >= backgroundMax {
		l.grantBackground(now)
		return true
	}
	for l.demand.len() > 0 {
		s := l.demand.pop()
		if len(s.asks) == 0 {
			l.want(s)
			continue
		}
		r, blocked := l.nextRun(s, l.start(s))
		if r.N > 0 {
			l.reserve(s, &r, true)
			l.launch(now, s, r)
			return true
		}
		if !blocked { // nothing is left to read for it
			s.wake(l, 0, true)
			l.want(s)
		}
	}
	for l.ahead.len() > 0 {
		s := l.ahead.pop()
		if r, _ := l.nextRun(s, s.have); r.N > 0 && l.reserve(s, &r, false) {
			l.launch(now, s, r)
			return true
		}
	}
	if len(l.back) > 0 {
		l.grantBackground(now)
		return true
	}
	return false
}

func (l *Lane) grantBackground(now time.Duration) {
	b := l.back[0]
	l.back = l.back[1:]
	l.backAt = now
	l.lastRun++
	r := Run{ID: l.lastRun, N: b.n, Background: true, Ask: b.ask}
	l.flyBytes += r.N
	l.flying[r.ID] = &flight{run: r, began: now}
	l.out.Runs = append(l.out.Runs, r)
	l.stats.BackgroundRuns++
}

// start is where the run for the stream's waiting reader begins: where it was read ahead to, also when he asks for something a little
// beyond, such as the end of the batches that he is about to take. They come next, and would cost a way of their own.
func (l *Lane) start(s *stream) int64 {
	pos := s.asks[0].pos
	if ahead := pos - s.have; s.runBytes > l.p.FirstBytes && ahead > 0 && ahead <= l.p.FirstBytes {
		return s.have
	}
	return pos
}

// nextRun is the stream's next run from pos on: behind what is there already, and not over what follows. Blocked:
// a run of another stream is reading just that, and its end will ask again.
func (l *Lane) nextRun(s *stream, pos int64) (r Run, blocked bool) {
	from, to := s.file.held.gap(pos)
	for _, fl := range l.flying {
		if r := fl.run; fl.s != nil && fl.s.file == s.file && r.Pos < to && r.Pos+r.N > from {
			if r.Pos <= from {
				return Run{}, true
			}
			to = r.Pos
		}
	}
	return Run{File: s.file.id, Pos: from, N: max(0, min(l.runBytes(s), to-from, s.limit-from))}, false
}

// share is one stream's part of the memory. What it holds stays below: a run and a half ahead of it, what it
// may go back to, and what is not worth dropping yet.
func (l *Lane) share() int64 { return l.p.MemoryBytes / int64(max(1, l.streams)) }

// runBytes is how long the stream's next run may be: two fifths of its share, or, as long as readers take what is there
// faster than it comes and so most of the memory is free, a quarter of that.
func (l *Lane) runBytes(s *stream) int64 {
	free := l.p.MemoryBytes - l.heldBytes - l.flyBytes
	n := min(s.runBytes, max(l.share()*2/5, free/4))
	if l.rate > 0 && l.p.TurnMax > 0 {
		turns := int64(max(1, l.demand.len()+l.ahead.len()+len(l.flying)))
		n = min(n, int64(l.rate*l.p.TurnMax.Seconds())/turns)
	}
	return max(n, min(l.p.FirstBytes, s.runBytes))
}

// keeps is what a stream keeps beside what was read ahead for it.
func (l *Lane) keeps() keep {
	share := l.share()
	return keep{min(l.p.BehindBytes, share/5), l.p.CloseBytes, min(l.p.DropBytes, share/10)}
}

// reserve finds memory for a run: what is only kept for readers that come later goes first, then the
// windows of those who take nothing. A reader that waits is never refused, but its run is cut short.
func (l *Lane) reserve(s *stream, r *Run, demand bool) bool {
	fits := func() bool { return l.heldBytes+l.flyBytes+r.N <= l.p.MemoryBytes }
	if fits() {
		return true
	}
	for _, f := range l.sorted() {
		l.dropBehind(f, pressed)
	}
	for demand && !fits() {
		idle := l.idlest(s)
		if idle == nil {
			break
		}
		l.stats.Reclaimed++
		l.forget(idle)
		l.dropBehind(idle.file, pressed)
		l.tidy(idle.file)
	}
	if fits() {
		return true
	}
	r.N = min(r.N, l.p.FirstBytes)
	return demand
}

func (l *Lane) launch(now time.Duration, s *stream, r Run) {
	l.lastRun++
	r.ID, r.Gentle = l.lastRun, now < l.busyUntil && l.p.SharePercent < 100
	s.flying, s.taken = true, false
	s.runBytes = min(s.runBytes*growth, l.p.RunBytes)
	l.flyBytes += r.N
	l.flying[r.ID] = &flight{run: r, s: s, began: now}
	l.out.Runs = append(l.out.Runs, r)
	l.stats.Runs++
}
