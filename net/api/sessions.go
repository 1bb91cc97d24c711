package api

import (
	"cmp"
	"math"
	"math/rand/v2"
	"sync"

	"platter/net/wire"
)

// Fetch sessions (KIP-227): what a fetcher wants is kept here, so that its next requests name only what changed, and
// their answers only what is new: records, an error, another high watermark or log start. The rules of ids, epochs
// and eviction are Kafka's (FetchSessionCache).
const (
	// sessionIdleMs is how long a session has to be unused, or another to have lived, before it may be evicted
	// (FetchSessionCache's evictionMs, min.incremental.fetch.session.eviction.ms).
	sessionIdleMs = 120_000
	// sessionPartsMax bounds the partitions of all sessions together, some 250 bytes each; one with a long name
	// counts for several (weight).
	sessionPartsMax = 1 << 19
	// The epochs that are not those of a session under way.
	epochNone = -1
	epochNew  = 0
)

// sessions are all fetch sessions of this broker.
type sessions struct {
	mu    sync.Mutex
	slots int
	byID  map[int32]*session
	parts int // of all, weighed
}

func (s *sessions) init(slots int) {
	s.slots, s.byID = slots, map[int32]*session{}
}

// open finds the session of a request, in which it is the one request until leave; nil without an error: it is a full
// fetch, and fresh says that a session is wanted.
func (s *sessions) open(c call, req *wire.FetchRequest, nowMs int64) (ss *session, fresh bool, code Code) {
	if req.SessionEpoch == epochNone || req.SessionEpoch == epochNew {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(s.byID[req.SessionID])
		return nil, req.SessionEpoch == epochNew, None
	}
	ss, epoch, code := s.step(req, c.Version, nowMs)
	if code != None {
		return nil, false, code
	}
	if !ss.enter(c.ctx) {
		return nil, false, InvalidFetchSessionEpoch
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byID[ss.id] != ss:
		code = FetchSessionIDNotFound
	case ss.epoch != epoch: // a later request has come by another connection
		code = InvalidFetchSessionEpoch
	default:
		d := ss.change(req)
		ss.weight, s.parts = ss.weight+d, s.parts+d
		if s.parts > sessionPartsMax {
			s.drop(ss)
			code = FetchSessionIDNotFound
		}
	}
	if code != None {
		ss.leave()
		return nil, false, code
	}
	ss.heard(req, nowMs)
	return ss, false, None
}

// step checks a request's session and epoch, and goes on to the next one.
func (s *sessions) step(req *wire.FetchRequest, version int16, nowMs int64) (*session, int32, Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss := s.byID[req.SessionID]
	switch {
	case ss == nil:
		return nil, 0, FetchSessionIDNotFound
	case ss.epoch != req.SessionEpoch:
		return nil, 0, InvalidFetchSessionEpoch
	case ss.byID != (version >= 13):
		return nil, 0, FetchSessionTopicIDError
	}
	ss.epoch, ss.usedMs = nextEpoch(ss.epoch), nowMs
	return ss, ss.epoch, None
}

func nextEpoch(e int32) int32 {
	if e == math.MaxInt32 {
		return 1
	}
	return e + 1
}

// drop ends a session, whose request under way goes on. mu is held.
func (s *sessions) drop(ss *session) {
	if ss != nil && s.byID[ss.id] == ss {
		delete(s.byID, ss.id)
		s.parts -= ss.weight
		ss.end()
	}
}

// make keeps a session of the partitions that ss has; false: there is no room.
func (s *sessions) make(ss *session, nowMs int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.admit(ss, nowMs) {
		return false
	}
	ss.epoch, ss.createdMs, ss.usedMs = 1, nowMs, nowMs
	for ss.id == 0 || s.byID[ss.id] != nil {
		ss.id = rand.Int32()
	}
	s.byID[ss.id] = ss
	s.parts += ss.weight
	return true
}

// admit makes room for a session: by the one that was unused for longest, when that is long enough, else by the
// smallest one, which has to be less worth than the new one, and not young.
func (s *sessions) admit(next *session, nowMs int64) bool {
	if s.slots <= 0 || next.count == 0 || s.parts+next.weight > sessionPartsMax {
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
	case nowMs-least.createdMs > sessionIdleMs && worth(least, next) < 0,
		next.follower && !least.follower:
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
	return cmp.Compare(a.count, b.count)
}
