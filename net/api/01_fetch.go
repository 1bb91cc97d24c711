package api

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/net/frame"
	"platter/net/wire"
	"platter/replication/replica"
)

// Fetch. Versions 4 to 18. Behaviour:
//   - every fetch is a full one: a client that asks for a session gets id 0, which says that there is
//     none (KIP-227); an incremental fetch is FETCH_SESSION_ID_NOT_FOUND, upon which clients start over;
//   - the first partition with data gives at least one whole batch, whatever its size; the others keep
//     within the request's and the partition's limit;
//   - a fetch that finds less than min.bytes is held for max.wait.ms, unless a partition has an error;
//     it ends early when the client goes away or the broker stops;
//   - records are file ranges, pinned until the reply was sent; nothing is copied here;
//   - consumers read up to the high watermark, or the last stable offset when they ask for committed
//     records; there are no aborted transactions yet;
//   - followers do not fetch yet: a replica id is NOT_LEADER_OR_FOLLOWER;
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
	release func()
}

// fetchPart is one partition of a fetch.
type fetchPart struct {
	q      *wire.FetchPartition
	topic  string
	from   Partition // nil: err is final
	err    error
	state  replica.State
	read   commitlog.Read
	pinned bool // read is to be released
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
	if f.req.SessionEpoch > 0 {
		f.resp.ErrorCode = h.count(c, FetchSessionIDNotFound)
		return f.reply(), nil
	}
	if f.req.Isolation == 1 {
		f.iso = replica.ReadCommitted
	}
	f.find()
	f.read()
	if !f.satisfied() {
		f.wait()
	}
	f.respond()
	return f.reply(), nil
}

// find looks up the partitions.
func (f *fetch) find() {
	for i := range f.req.Topics {
		t := &f.req.Topics[i]
		name, err := t.Name, error(nil)
		if f.c.Version >= 13 {
			known, ok := f.h.topicName(store.UUID(t.ID))
			if name = known; !ok {
				err = refuse(UnknownTopicID, "this server does not host this topic id")
			}
		}
		if f.req.ReplicaID >= 0 && err == nil {
			err = replica.ErrNotLeader
		}
		for j := range t.Partitions {
			part := fetchPart{q: &t.Partitions[j], topic: name, err: err}
			if err == nil {
				part.from, part.err = f.h.leader(store.TP{Topic: name, Partition: part.q.Partition})
			}
			f.parts = append(f.parts, part)
		}
	}
}

// read reads all partitions anew, within the request's bounds.
func (f *fetch) read() {
	left := min(int64(max(f.req.MaxBytes, 0)), f.h.Config.Int64("fetch.max.bytes"))
	first := true
	for i := range f.parts {
		part := &f.parts[i]
		part.unpin()
		if part.from == nil {
			continue
		}
		most := min(int64(max(part.q.MaxBytes, 0)), left)
		part.read, part.state, part.err = part.from.Read(part.q.FetchOffset, most, f.iso, part.q.CurrentLeaderEpoch, first)
		if part.err != nil {
			continue
		}
		part.pinned = true
		if part.read.SizeBytes > 0 {
			first = false
			left = max(left-part.read.SizeBytes, 0)
		}
	}
}

// satisfied says whether there is enough to answer with.
func (f *fetch) satisfied() bool {
	if len(f.parts) == 0 || f.req.MaxWaitMs <= 0 {
		return true
	}
	size := int64(0)
	for i := range f.parts {
		part := &f.parts[i]
		if part.err != nil {
			return true
		}
		size += part.read.SizeBytes
		// A bound or a segment's end cut the read short: waiting brings nothing more.
		if part.read.SizeBytes > 0 && part.read.NextOffset < f.limit(part) {
			return true
		}
	}
	return size >= int64(min(f.req.MinBytes, f.req.MaxBytes))
}

func (f *fetch) limit(part *fetchPart) int64 {
	if f.iso == replica.ReadCommitted {
		return part.state.LastStable
	}
	return part.state.HighWatermark
}

// wait reads again whenever a partition moves, until there is enough, the time is over, or the client
// is gone.
func (f *fetch) wait() {
	w := &replica.Waiter{C: make(chan struct{}, 1)}
	for i := range f.parts {
		f.parts[i].from.Watch(w)
	}
	defer func() {
		for i := range f.parts {
			f.parts[i].from.Unwatch(w)
		}
	}()
	over := f.h.Clock.After(time.Duration(f.req.MaxWaitMs) * time.Millisecond)
	for {
		// Once more after Watch: what came between the last read and it gave no signal.
		f.read()
		if f.satisfied() {
			return
		}
		select {
		case <-w.C:
		case <-over:
			return
		case <-f.c.ctx.Done():
			return
		}
	}
}

// respond fills in the response.
func (f *fetch) respond() {
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
	rp.Ranges = part.read.Ranges
	if f.iso == replica.ReadCommitted {
		rp.Aborted = noneAborted
	}
	t := m.Topic(part.topic)
	t.FetchRequests.Inc()
	if size := float64(part.read.SizeBytes); size > 0 {
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

func (part *fetchPart) unpin() {
	if part.pinned {
		part.read.Release()
		part.pinned = false
	}
}

// free unpins everything and gives f back.
func (f *fetch) free() {
	for i := range f.parts {
		f.parts[i].unpin()
	}
	f.req.Put()
	clear(f.parts)
	for i := range f.resp.Topics {
		clear(f.resp.Topics[i].Partitions)
	}
	f.h, f.c, f.req, f.iso, f.parts = nil, call{}, nil, 0, f.parts[:0]
	if cap(f.parts) <= partsKept {
		fetches.Put(f)
	}
}
