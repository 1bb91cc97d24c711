package api

import (
	"time"

	"platter/net/wire"
)

// A fetch in a session looks at the partitions that stand in the session's line, and while it waits at those that move.

// takeDue takes them in hand; false: there are none.
func (f *fetch) takeDue() bool {
	f.due = f.session.due(f.due[:0])
	some := false
	for _, p := range f.due {
		if p.gone {
			continue
		}
		some = true
		if p.hand == 0 {
			f.wants = append(f.wants, p)
			f.parts = append(f.parts, fetchPart{q: &p.want})
			p.hand = len(f.parts)
		}
		part := &f.parts[p.hand-1]
		part.again = f.noted && f.follower() // what a follower has is noted at the begin of a request
		part.diverging = wire.EpochEnd{}
		f.lookUp(part, p.key.topic, p.key.id)
		p.listen(part.from)
	}
	clear(f.due)
	return some
}

// waitForNews is wait in a session: only what moves is looked at.
func (f *fetch) waitForNews(over <-chan time.Time) {
	ss := f.session
	f.unpin() // nothing is pinned while nothing happens
	for {
		if !sleep(f, ss.wake, over) || ss.newer.Load() > 0 {
			break
		}
		begin := f.h.Clock.Now()
		if !f.takeDue() {
			continue
		}
		f.read()
		if f.satisfied() {
			return
		}
		f.unpin()
		pause := restFactor * f.h.Clock.Now().Sub(begin)
		if pause > restMin && !sleep(f, f.h.Clock.After(pause), over) {
			break
		}
	}
	f.takeDue()
	f.read()
}

// respondNews answers with what is news of the partitions in hand, and puts those in line that the next request has to look
// at whatever happens: the fetcher does not know all of them yet.
func (f *fetch) respondNews() {
	ss := f.session
	f.resp.SessionID = ss.id
	f.due = f.due[:0]
	var last *sessionPart
	for i := range f.parts {
		part, p := &f.parts[i], f.wants[i]
		news := part.err != nil || part.read.SizeBytes > 0 || part.diverging.Known ||
			part.state.HighWatermark != p.hw || part.state.LogStart != p.start
		p.remember(part)
		switch p.hand = 0; {
		case part.read.SizeBytes > 0:
			ss.behind(p)
		case part.err != nil, part.diverging.Known, part.again, part.q.FetchOffset < f.limit(part):
			f.due = append(f.due, p)
		}
		if !news {
			continue
		}
		if last == nil || last.key.topic != p.key.topic || last.key.id != p.key.id {
			f.resp.AddTopic(p.key.topic, p.key.id)
		}
		last = p
		rt := &f.resp.Topics[len(f.resp.Topics)-1]
		rt.Partitions = append(rt.Partitions, f.outcome(part))
	}
	ss.again(f.due)
	clear(f.due)
}

// remember notes what the fetcher is told of a partition; an error is told again.
func (p *sessionPart) remember(part *fetchPart) {
	p.hw, p.start = -1, -1
	if part.err == nil && !part.diverging.Known {
		p.hw, p.start = part.state.HighWatermark, part.state.LogStart
	}
}

// begin makes the session that a full fetch asked for, where there is room.
func (f *fetch) begin() {
	ss := newSession(f.follower(), f.c.Version >= 13)
	n := 0
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		for range t.Partitions {
			k := sessionKey{t.Name, t.ID, f.parts[n].q.Partition}
			ss.weight += ss.put(k, f.parts[n].q)
			ss.at[k].remember(&f.parts[n])
			n++
		}
	}
	ss.count = len(ss.at)
	if f.h.sessions.make(ss, f.h.elapsedMs()) {
		f.resp.SessionID = ss.id
	}
}
