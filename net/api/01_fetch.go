package api

import (
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/net/frame"
	"platter/net/wire"
	"platter/replication/core"
	"platter/replication/replica"
)

// Fetch. Versions 4 to 18. Behaviour:
//   - a fetcher that asks for a session gets one while there is room (KIP-227, sessions.go); id 0 says that there
//     is none, and every fetch is a full one;
//   - the first partition with data gives at least one whole batch, whatever its size; the others keep
//     within the request's and the partition's limit;
//   - a fetch that finds less than min.bytes is held for max.wait.ms, unless a partition has an error;
//     it ends early when the client goes away or the broker stops;
//   - records are file ranges, pinned until the reply was sent; nothing is copied here. How many may be
//     pinned is bounded: what is left out, the next fetch brings;
//   - consumers read up to the high watermark, or the last stable offset when they ask for committed
//     records; there are no aborted transactions yet;
//   - a follower, which names itself, reads up to the log end; what it has is noted at the replica. Where its
//     log parts from this one, it gets the point instead of records (KIP-595, from version 12);
//   - a fetch at the log end is empty, never out of range.
func init() { registerRaw(kmsg.Fetch, 4, 18, (*Handler).fetch) }

// noneAborted is the empty list that readers of committed records get.
var noneAborted = []wire.AbortedTxn{}

// fetch is one request under way. It is used again once its reply was sent.
type fetch struct {
	h       *Handler
	c       call
	req     *wire.FetchRequest
	resp    wire.FetchResponse
	parts   []fetchPart
	iso     replica.Isolation
	held    int64 // file ranges pinned
	cut     bool  // partitions were left out for want of pins
	noted   bool  // what a follower has was told to the replicas
	session *session
	wants   []*sessionPart // the session's partitions, one for each part
	due     []*sessionPart // used again
	fresh   bool           // a session is wanted
	release func()
}

// fetchPart is one partition of a fetch.
type fetchPart struct {
	q         *wire.FetchPartition
	topic     string
	id        store.UUID // zero: asked for by name
	from      Partition  // nil: err is final
	err       error
	state     replica.State
	read      commitlog.Read
	pinned    bool // read is to be released
	again     bool // it moved while the fetch waited: the session's next request has to look at it
	diverging wire.EpochEnd
}

var fetches = sync.Pool{New: func() any { return new(fetch) }}

func (h *Handler) fetch(c call) (*frame.Reply, error) {
	f := fetches.Get().(*fetch)
	f.h, f.c, f.req = h, c, wire.GetFetchRequest()
	if f.release == nil {
		f.release = f.free
	}
	if err := f.req.Decode(c.Version, c.Body); err != nil {
		f.free()
		return nil, err
	}
	f.resp.Reset()
	var code Code
	if f.session, f.fresh, code = h.sessions.open(c, f.req, h.elapsedMs()); code != None {
		f.resp.ErrorCode = h.count(c, code)
		return f.reply(), nil
	}
	switch {
	case f.follower():
		f.iso = replica.LogEnd
	case f.req.Isolation == 1:
		f.iso = replica.ReadCommitted
	}
	f.find()
	f.read()
	f.noted = true
	if !f.satisfied() {
		f.wait()
	}
	f.respond()
	switch {
	case f.session != nil:
		f.session.leave()
	case f.fresh:
		f.begin()
	}
	return f.reply(), nil
}

// find looks up the partitions: those of the session that are due, or those that the request names.
func (f *fetch) find() {
	if f.session != nil {
		f.takeDue()
		return
	}
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		for j := range t.Partitions {
			f.add(t.Name, t.ID, &t.Partitions[j])
		}
	}
}

func (f *fetch) add(topic string, id store.UUID, q *wire.FetchPartition) {
	f.parts = append(f.parts, fetchPart{q: q})
	f.lookUp(&f.parts[len(f.parts)-1], topic, id)
}

func (f *fetch) lookUp(part *fetchPart, topic string, id store.UUID) {
	part.topic, part.from, part.err = topic, nil, nil
	if f.c.Version >= 13 {
		known, ok := f.h.topicName(id)
		if part.topic, part.id = known, id; !ok {
			part.err = errTopicID
		}
	}
	if part.err == nil {
		part.from, part.err = f.h.leader(store.TP{Topic: part.topic, Partition: part.q.Partition})
	}
}

// read reads all partitions anew, within the request's bounds. With more partitions than one fetch may
// pin files of, each read starts at another one, so that none is always the last; a session has its own order.
func (f *fetch) read() {
	f.unpin()
	left := min(int64(max(f.req.MaxBytes, 0)), f.h.Config.Int64("fetch.max.bytes"))
	first, start := true, 0
	if f.session == nil && int64(len(f.parts)) > f.h.pins.each {
		start = int(f.h.pins.turn.Add(1) % uint64(len(f.parts)))
	}
	for i := range f.parts {
		part := &f.parts[(start+i)%len(f.parts)]
		if part.from == nil {
			continue
		}
		if !f.h.pins.room(f.held) {
			f.cut = true
			part.look()
			continue
		}
		if f.follower() && part.diverges() {
			continue
		}
		most := min(int64(max(part.q.MaxBytes, 0)), left)
		part.read, part.state, part.err = part.from.Read(part.q.FetchOffset, most, f.iso, part.q.CurrentLeaderEpoch, first)
		part.checkID()
		if part.err != nil {
			continue
		}
		part.pinned = true
		if f.follower() {
			if f.note(part); part.err != nil {
				continue
			}
		}
		if part.read.SizeBytes > 0 {
			first = false
			left = max(left-part.read.SizeBytes, 0)
			f.held += f.h.pins.take(len(part.read.Ranges))
		}
	}
}

// checkID: what was asked for by a topic's id comes from that topic, whatever has its name by now.
func (part *fetchPart) checkID() {
	switch {
	case part.id == store.UUID{}:
	case errors.Is(part.err, replica.ErrUnknownPartition):
		part.err = errTopicID
	case part.err == nil && part.state.TopicID != part.id:
		part.read.Release()
		part.read, part.err = commitlog.Read{}, errTopicID
	}
}

// look takes the partition's state without reading: the next fetch may.
func (part *fetchPart) look() {
	part.state, part.err = part.from.State(part.q.CurrentLeaderEpoch)
	if part.err == nil && !part.state.IsLeader {
		part.err = replica.ErrNotLeader
	}
	part.checkID()
}

// unpin gives up what was read.
func (f *fetch) unpin() {
	for i := range f.parts {
		part := &f.parts[i]
		if part.pinned {
			part.read.Release()
		}
		part.read, part.pinned = commitlog.Read{}, false
	}
	f.h.pins.give(f.held)
	f.held, f.cut = 0, false
}

// follower says whether a broker fetches, to replicate.
func (f *fetch) follower() bool { return f.req.ReplicaID >= 0 }

// diverges finds out whether a follower's log parts from this leader's.
func (part *fetchPart) diverges() bool {
	st, err := part.from.State(part.q.CurrentLeaderEpoch)
	if err == nil && !st.IsLeader {
		err = replica.ErrNotLeader
	}
	part.state, part.err = st, err
	if part.checkID(); part.err != nil {
		return true
	}
	epoch, end, known := part.from.Diverges(part.q.LastFetchedEpoch, part.q.FetchOffset)
	switch {
	case known && epoch < 0:
		part.err = commitlog.ErrOffsetOutOfRange // this log begins behind all that the follower has
	case known:
		part.diverging = wire.EpochEnd{Known: true, Epoch: epoch, EndOffset: end}
	}
	return known
}

// note tells a replica what its follower has: once a request, since only that is news.
func (f *fetch) note(part *fetchPart) {
	if f.noted {
		return
	}
	part.err = part.from.FollowerFetched(core.Fetch{
		Broker: f.req.ReplicaID, BrokerEpoch: f.req.ReplicaEpoch, LeaderEpoch: part.state.LeaderEpoch,
		Offset: part.q.FetchOffset, Durable: part.q.FetchOffset, LogStart: part.q.LogStartOffset, NowMs: f.h.elapsedMs(),
	})
	if part.err == nil {
		part.state, part.err = part.from.State(part.q.CurrentLeaderEpoch) // the high watermark may have moved by it
	}
	if part.err != nil {
		part.read.Release()
		part.read, part.pinned = commitlog.Read{}, false
	}
}

// satisfied says whether there is enough to answer with.
func (f *fetch) satisfied() bool {
	if f.req.MaxWaitMs <= 0 || len(f.parts) == 0 && (f.session == nil || len(f.session.at) == 0) {
		return true
	}
	size := int64(0)
	for i := range f.parts {
		part := &f.parts[i]
		if part.err != nil || part.diverging.Known {
			return true
		}
		size += part.read.SizeBytes
		// A bound or a segment's end cut the read short: waiting brings nothing more.
		if part.read.SizeBytes > 0 && (f.cut || part.read.NextOffset < f.limit(part)) {
			return true
		}
	}
	return size >= int64(min(f.req.MinBytes, f.req.MaxBytes))
}

func (f *fetch) limit(part *fetchPart) int64 {
	switch f.iso {
	case replica.ReadCommitted:
		return part.state.LastStable
	case replica.LogEnd:
		return part.state.LogEnd
	}
	return part.state.HighWatermark
}

// wait reads again whenever a partition moves, until there is enough, the time is over, or the client
// is gone.
func (f *fetch) wait() {
	f.h.Metrics.WaitingFetches.Inc()
	defer f.h.Metrics.WaitingFetches.Dec()
	over := f.h.Clock.After(time.Duration(f.req.MaxWaitMs) * time.Millisecond)
	if f.session != nil {
		f.waitForNews(over)
		return
	}
	w := replica.NewWaiter()
	for i := range f.parts {
		f.parts[i].from.Watch(w)
	}
	defer func() {
		for i := range f.parts {
			f.parts[i].from.Unwatch(w)
		}
	}()
	for {
		// Once more after Watch: what came between the last read and it gave no signal.
		begin := f.h.Clock.Now()
		f.read()
		if f.satisfied() {
			return
		}
		f.unpin() // nothing is pinned while nothing happens
		pause := restFactor * f.h.Clock.Now().Sub(begin)
		if !sleep(f, w.C, over) || pause > restMin && !sleep(f, f.h.Clock.After(pause), over) {
			f.read()
			return
		}
	}
}

// A fetch of many partitions of which one moves all the time reads them all anew each time: it rests
// restFactor times as long as it has worked, unless that is too short to count.
const (
	restFactor = 4
	restMin    = 200 * time.Microsecond
)

// sleep waits until wake or the end of the poll; false at its end.
func sleep[T any](f *fetch, wake <-chan T, over <-chan time.Time) bool {
	select {
	case <-over:
	case <-f.c.ctx.Done():
	case <-wake:
		return true
	}
	return false
}

// respond fills in the response, of a session only with what is news.
func (f *fetch) respond() {
	if f.session != nil {
		f.respondNews()
		return
	}
	n := 0
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		rt := f.resp.AddTopic(t.Name, t.ID)
		for range t.Partitions {
			rt.Partitions = append(rt.Partitions, f.outcome(&f.parts[n]))
			n++
		}
	}
}

func (f *fetch) outcome(part *fetchPart) wire.FetchPartitionResponse {
	m := f.h.Metrics
	code := codeOf(part.err)
	rp := wire.FetchPartitionResponse{
		Partition: part.q.Partition, ErrorCode: f.h.count(f.c, code), PreferredReadReplica: -1,
		HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1,
	}
	m.All.FetchRequests.Inc()
	if part.err != nil {
		m.All.FailedFetch.Inc()
		if rp.Leader = f.h.hint(code, part.topic, part.q.Partition); rp.Leader.Known {
			f.resp.Endpoints = withEndpoint(f.resp.Endpoints, f.h.Image(), rp.Leader.ID, f.c.listener())
		}
		if code == UnknownServerError || code == KafkaStorageError || code == CorruptMessage {
			f.h.rejects.Warn("fetch failed", "topic", part.topic, "partition", part.q.Partition,
				"offset", part.q.FetchOffset, "err", part.err)
		}
		return rp
	}
	st := &part.state
	rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = st.HighWatermark, st.LastStable, st.LogStart
	rp.Ranges, rp.Diverging = part.read.Ranges, part.diverging
	if f.iso == replica.ReadCommitted {
		rp.Aborted = noneAborted
	}
	t := m.Topic(part.topic)
	t.FetchRequests.Inc()
	switch size := float64(part.read.SizeBytes); {
	case size == 0:
	case f.follower():
		m.ReplicationOut.Add(size)
	default:
		m.All.BytesOut.Add(size)
		t.BytesOut.Add(size)
	}
	return rp
}

// reply encodes; the ranges stay pinned until the reply is released.
func (f *fetch) reply() *frame.Reply {
	reply := frame.New()
	f.resp.Reply(reply, f.c.Header)
	reply.OnRelease(f.release)
	return reply
}

// free unpins everything and gives f back.
func (f *fetch) free() {
	f.unpin()
	f.req.Put()
	clear(f.parts)
	for i := range f.resp.Topics {
		clear(f.resp.Topics[i].Partitions)
	}
	f.h, f.c, f.req, f.iso, f.noted, f.parts = nil, call{}, nil, 0, false, f.parts[:0]
	clear(f.wants)
	f.session, f.wants, f.fresh = nil, f.wants[:0], false
	if cap(f.parts) <= partsKept {
		fetches.Put(f)
	}
}
