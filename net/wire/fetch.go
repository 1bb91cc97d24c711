package wire

import (
	"math"
	"sync"
)

// FetchRequest is Fetch 4 to 18. It is used again: take one with GetFetchRequest.
type FetchRequest struct {
	ReplicaID    int32 // broker id of a follower, -1 of a consumer
	ReplicaEpoch int64 // broker epoch of a follower, -1 unknown; from version 15
	MaxWaitMs    int32
	MinBytes     int32
	MaxBytes     int32
	Isolation    int8  // 0 read uncommitted, 1 read committed
	SessionID    int32 // 0: none
	SessionEpoch int32 // -1: no session is wanted (the default), 0: a new one
	Topics       []FetchTopic
	Forgotten    []ForgottenTopic // leave the session
	Rack         string
	ClusterID    string // "" when null
}

// FetchTopic has a name up to version 12, an id from 13.
type FetchTopic struct {
	Name       string
	ID         [16]byte
	Partitions []FetchPartition
}

// FetchPartition is what is wanted of one partition.
type FetchPartition struct {
	Partition          int32
	CurrentLeaderEpoch int32 // -1 unknown
	FetchOffset        int64
	LastFetchedEpoch   int32    // of a follower, -1 unknown (KIP-595)
	LogStartOffset     int64    // of a follower, -1 unknown
	MaxBytes           int32    // the first batch comes whatever its size
	DirectoryID        [16]byte // of a follower (KIP-853)
	HighWatermark      int64    // that the follower knows, math.MaxInt64 unknown (KIP-1166)
}

// ForgottenTopic has a name up to version 12, an id from 13.
type ForgottenTopic struct {
	Name       string
	ID         [16]byte
	Partitions []int32
}

var fetchRequests = sync.Pool{New: func() any { return new(FetchRequest) }}

// GetFetchRequest takes a request from the pool.
func GetFetchRequest() *FetchRequest { return fetchRequests.Get().(*FetchRequest) }

// Put gives the request back to the pool. Its strings stay valid.
func (q *FetchRequest) Put() {
	kept := cap(q.Topics) + cap(q.Forgotten)
	for i := range q.Topics[:cap(q.Topics)] {
		kept += cap(q.Topics[:cap(q.Topics)][i].Partitions)
	}
	for i := range q.Forgotten[:cap(q.Forgotten)] {
		kept += cap(q.Forgotten[:cap(q.Forgotten)][i].Partitions)
	}
	if kept <= keptElems {
		fetchRequests.Put(q)
	}
}

// Decode reads a body.
func (q *FetchRequest) Decode(version int16, body []byte) error {
	r := reader{p: body, flex: Flexible(KeyFetch, version)}
	*q = FetchRequest{
		ReplicaID: -1, ReplicaEpoch: -1, SessionEpoch: -1, MaxBytes: math.MaxInt32,
		Topics: q.Topics[:0], Forgotten: q.Forgotten[:0], Rack: q.Rack,
	}
	if version <= 14 {
		q.ReplicaID = r.int32("replica id")
	}
	q.MaxWaitMs = r.int32("max wait")
	q.MinBytes = r.int32("min bytes")
	q.MaxBytes = r.int32("max bytes")
	q.Isolation = r.int8("isolation level")
	if version >= 7 {
		q.SessionID = r.int32("session id")
		q.SessionEpoch = r.int32("session epoch")
	}
	for n := r.array("topics", 4); n > 0 && r.err == nil; n-- {
		q.Topics = next(q.Topics)
		q.Topics[len(q.Topics)-1].decode(&r, version)
	}
	if version >= 7 {
		for n := r.array("forgotten topics", 4); n > 0 && r.err == nil; n-- {
			q.Forgotten = next(q.Forgotten)
			q.Forgotten[len(q.Forgotten)-1].decode(&r, version)
		}
	}
	var rack []byte
	if version >= 11 {
		rack = r.string("rack")
	}
	if q.Rack != string(rack) {
		q.Rack = string(rack)
	}
	r.tags(func(tag uint32, t *reader) {
		switch {
		case tag == 0:
			q.ClusterID = string(t.nullableString("cluster id"))
		case tag == 1 && version >= 15:
			q.ReplicaID = t.int32("replica id")
			q.ReplicaEpoch = t.int64("replica epoch")
			t.tags(nil)
		}
	})
	return r.done(KeyFetch, version)
}

func (t *FetchTopic) decode(r *reader, version int16) {
	readTopic(r, version >= 13, &t.Name, &t.ID)
	t.Partitions = t.Partitions[:0]
	for n := r.array("partitions", 16); n > 0 && r.err == nil; n-- {
		t.Partitions = next(t.Partitions)
		t.Partitions[len(t.Partitions)-1].decode(r, version)
	}
	r.tags(nil)
}

func (p *FetchPartition) decode(r *reader, version int16) {
	*p = FetchPartition{CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, LogStartOffset: -1, HighWatermark: math.MaxInt64}
	p.Partition = r.int32("partition")
	if version >= 9 {
		p.CurrentLeaderEpoch = r.int32("current leader epoch")
	}
	p.FetchOffset = r.int64("fetch offset")
	if version >= 12 {
		p.LastFetchedEpoch = r.int32("last fetched epoch")
	}
	if version >= 5 {
		p.LogStartOffset = r.int64("log start offset")
	}
	p.MaxBytes = r.int32("partition max bytes")
	if !r.flex {
		return
	}
	r.tags(func(tag uint32, t *reader) {
		switch {
		case tag == 0 && version >= 17:
			p.DirectoryID = t.uuid("replica directory id")
		case tag == 1 && version >= 18:
			p.HighWatermark = t.int64("high watermark")
		}
	})
}

func (t *ForgottenTopic) decode(r *reader, version int16) {
	readTopic(r, version >= 13, &t.Name, &t.ID)
	t.Partitions = t.Partitions[:0]
	for n := r.array("forgotten partitions", 4); n > 0 && r.err == nil; n-- {
		t.Partitions = append(t.Partitions, r.int32("partition"))
	}
	r.tags(nil)
}
