package api

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"platter/engine/store"
	"platter/net/wire"
)

// Fetch sessions (KIP-227): what a fetcher wants is kept here, so that its next requests name only what changed, and
// their answers only what is new: records, an error, another high watermark or log start. The rules of ids, epochs
// and eviction are Kafka's (FetchSessionCache).
const (
	// sessionIdleMs is how long a session has to be unused, or another to have lived, before it may be evicted
	// (FetchSessionCache's evictionMs, min.incremental.fetch.session.eviction.ms).
	sessionIdleMs = 120_000
	// sessionPartsMax bounds the partitions of all sessions together, some 150 bytes each; one with a long name
	// counts for several (weight).
	sessionPartsMax = 1 << 19
	// The epochs that are not those of a session under way.
	epochNone = -1
	epochNew  = 0
)

// session is one fetcher's. Its fields belong to sessions.mu.
type session struct {
	id, epoch int32
	follower  bool // it may evict consumers' sessions
	byID      bool // its topics are named by id
	createdMs int64
	usedMs    int64
	parts     []*sessionPart // in the order in which they are read: who got records goes last
	at        map[sessionKey]*sessionPart
}

type sessionKey struct {
	topic     string
	id        store.UUID
	partition int32
}

// sessionPart is one partition, with what the fetcher was told last.
type sessionPart struct {
	key   sessionKey
	want  wire.FetchPartition
	hw    int64
	start int64
	got   bool // records came with the last answer
}

// sessions are all fetch sessions of this broker.
type sessions struct {
	mu    sync.Mutex
	slots int
	byID  map[int32]*session
	parts int // of all, weighed
}

// weight is what a partition counts for. Names come from anybody, and those of topics that are not there are kept too.
func (k *sessionKey) weight() int { return 1 + len(k.topic)/nameBytesPerPart }

// nameBytesPerPart is as much as one partition takes beside its name.
const nameBytesPerPart = 128

func (ss *session) weight() int {
	n := 0
	for _, p := range ss.parts {
		n += p.key.weight()
	}
	return n
}

func (s *sessions) init(slots int) {
	s.slots, s.byID = slots, map[int32]*session{}
}

// open does what a request says of its session. The partitions to fetch are the session's own copies; fresh says that
// a session is wanted and none is there; else the request is a full fetch.
func (s *sessions) open(req *wire.FetchRequest, version int16, nowMs int64) (ss *session, wants []sessionPart, fresh bool, code Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.SessionEpoch == epochNone || req.SessionEpoch == epochNew {
		s.drop(s.byID[req.SessionID])
		return nil, nil, req.SessionEpoch == epochNew, None
	}
	ss = s.byID[req.SessionID]
	switch {
	case ss == nil:
		return nil, nil, false, FetchSessionIDNotFound
	case ss.epoch != req.SessionEpoch:
		return nil, nil, false, InvalidFetchSessionEpoch
	case ss.byID != (version >= 13):
		return nil, nil, false, FetchSessionTopicIDError
	}
	ss.epoch, ss.usedMs = nextEpoch(ss.epoch), nowMs
	s.change(ss, req)
	if s.parts > sessionPartsMax {
		s.drop(ss)
		return nil, nil, false, FetchSessionIDNotFound
	}
	wants = make([]sessionPart, len(ss.parts))
	for i, p := range ss.parts {
		wants[i] = *p
	}
	return ss, wants, false, None
}

func nextEpoch(e int32) int32 {
	if e == math.MaxInt32 {
		return 1
	}
	return e + 1
}

// change takes over what a request says anew, and what it forgets.
func (s *sessions) change(ss *session, req *wire.FetchRequest) {
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			k := sessionKey{t.Name, t.ID, t.Partitions[j].Partition}
			if p := ss.at[k]; p != nil {
				p.want = t.Partitions[j]
				continue
			}
			s.add(ss, &sessionPart{key: k, want: t.Partitions[j], hw: -1, start: -1})
		}
	}
	gone := false
	for i := range req.Forgotten {
		t := &req.Forgotten[i]
		for _, n := range t.Partitions {
			k := sessionKey{t.Name, t.ID, n}
			if ss.at[k] != nil {
				delete(ss.at, k)
				s.parts -= k.weight()
				gone = true
			}
		}
	}
	if gone {
		ss.parts = slices.DeleteFunc(ss.parts, func(p *sessionPart) bool { return ss.at[p.key] != p })
	}
}

func (s *sessions) add(ss *session, p *sessionPart) {
	ss.parts = append(ss.parts, p)
	ss.at[p.key] = p
	s.parts += p.key.weight()
}

func (s *sessions) drop(ss *session) {
	if ss != nil && s.byID[ss.id] == ss {
		delete(s.byID, ss.id)
		s.parts -= ss.weight()
	}
}

// make keeps a session with these partitions; nil: there is no room.
func (s *sessions) make(follower, byID bool, parts []sessionPart, nowMs int64) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	weight := 0
	for i := range parts {
		weight += parts[i].key.weight()
	}
	if !s.admit(follower, len(parts), weight, nowMs) {
		return nil
	}
	ss := &session{epoch: 1, follower: follower, byID: byID, createdMs: nowMs, usedMs: nowMs, at: make(map[sessionKey]*sessionPart, len(parts))}
	for ss.id == 0 || s.byID[ss.id] != nil {
		ss.id = rand.Int32()
	}
	s.byID[ss.id] = ss
	for i := range parts {
		if p := &parts[i]; ss.at[p.key] == nil {
			s.add(ss, p)
		}
	}
	return ss
}

// admit makes room for a session: by the one that was unused for longest, when that is long enough, else by the
// smallest one, which has to be less worth than the new one, and not young.
func (s *sessions) admit(follower bool, parts, weight int, nowMs int64) bool {
	if s.slots <= 0 || parts == 0 || s.parts+weight > sessionPartsMax {
		return false
	}
	if len(s.byID) < s.slots {
		return true
	}
	var stale, least *session
	for _, ss := range s.byID {
		if stale == nil || ss.usedMs < stale.usedMs {
			stale = ss
		}
		if least == nil || worth(ss, least) < 0 {
			least = ss
		}
	}
	switch {
	case nowMs-stale.usedMs > sessionIdleMs:
		s.drop(stale)
	case nowMs-least.createdMs > sessionIdleMs && worth(least, &session{follower: follower, parts: make([]*sessionPart, parts)}) < 0,
		follower && !least.follower:
		s.drop(least)
	default:
		return false
	}
	return true
}

func worth(a, b *session) int {
	if a.follower != b.follower {
		if a.follower {
			return 1
		}
		return -1
	}
	return cmp.Compare(len(a.parts), len(b.parts))
}

// told notes what the fetcher was told: who got records goes last.
func (s *sessions) told(ss *session, parts []sessionPart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := false
	for i := range parts {
		p := ss.at[parts[i].key]
		if p == nil {
			continue
		}
		p.hw, p.start, p.got = parts[i].hw, parts[i].start, parts[i].got
		moved = moved || p.got
	}
	if moved {
		slices.SortStableFunc(ss.parts, func(a, b *sessionPart) int {
			switch {
			case a.got == b.got:
				return 0
			case b.got:
				return -1
			}
			return 1
		})
	}
}

// respondNews answers an incremental fetch.
func (f *fetch) respondNews() {
	f.resp.SessionID = f.session.id
	var rt *wire.FetchTopicResponse
	var last sessionKey
	for i := range f.parts {
		part, w := &f.parts[i], &f.wants[i]
		news := part.err != nil || part.read.SizeBytes > 0 || part.diverging.Known ||
			part.state.HighWatermark != w.hw || part.state.LogStart != w.start
		if f.remember(w, part); !news {
			continue
		}
		if rt == nil || last.topic != w.key.topic || last.id != w.key.id {
			rt, last = f.resp.AddTopic(w.key.topic, w.key.id), w.key
		}
		rt.Partitions = append(rt.Partitions, f.outcome(part))
	}
	f.h.sessions.told(f.session, f.wants)
}

// remember notes what the fetcher is told of a partition; an error is told again.
func (f *fetch) remember(w *sessionPart, part *fetchPart) {
	w.hw, w.start, w.got = -1, -1, part.read.SizeBytes > 0
	if part.err == nil && !part.diverging.Known {
		w.hw, w.start = part.state.HighWatermark, part.state.LogStart
	}
}

// begin makes the session that a full fetch asked for, where there is room.
func (f *fetch) begin() {
	parts := make([]sessionPart, len(f.parts))
	n := 0
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		for range t.Partitions {
			parts[n].key, parts[n].want = sessionKey{t.Name, t.ID, f.parts[n].q.Partition}, *f.parts[n].q
			f.remember(&parts[n], &f.parts[n])
			n++
		}
	}
	if ss := f.h.sessions.make(f.follower(), f.c.Version >= 13, parts, f.h.Clock.NowMs()); ss != nil {
		f.resp.SessionID = ss.id
	}
}
