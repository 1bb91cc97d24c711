package wire

import (
	"platter/io/disk"
	"platter/net/frame"
)

// FetchResponse is Fetch 4 to 18. Records are file ranges, which are sent as they lie on disk.
type FetchResponse struct {
	ThrottleMs int32
	ErrorCode  int16
	SessionID  int32
	Topics     []FetchTopicResponse
	Endpoints  []Endpoint // of hinted leaders; sent from version 16

	cuts []int // used again by Reply
}

// FetchTopicResponse has the name or the id that the request had.
type FetchTopicResponse struct {
	Name       string
	ID         [16]byte
	Partitions []FetchPartitionResponse
}

// FetchPartitionResponse is what one partition gives. Offsets are -1 where they are not known.
type FetchPartitionResponse struct {
	Partition            int32
	ErrorCode            int16
	HighWatermark        int64
	LastStableOffset     int64
	LogStartOffset       int64        // sent from version 5
	Aborted              []AbortedTxn // nil: null, as for readers of uncommitted records
	PreferredReadReplica int32        // -1: none; sent from version 11
	Ranges               []disk.Range // whole batches; files stay open until the reply's release
	Diverging            EpochEnd     // sent from version 12
	Leader               LeaderHint   // sent from version 12
}

// AbortedTxn is an aborted transaction within the range fetched.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// EpochEnd tells a follower where its log parts from the leader's (KIP-595). The zero value says nothing
// and is not sent.
type EpochEnd struct {
	Known     bool
	Epoch     int32
	EndOffset int64
}

// Reset empties the response and keeps its memory.
func (f *FetchResponse) Reset() {
	for i := range f.Topics {
		clear(f.Topics[i].Partitions) // or they would keep files
	}
	*f = FetchResponse{Topics: f.Topics[:0], Endpoints: f.Endpoints[:0], cuts: f.cuts}
}

// AddTopic appends a topic without partitions, whose slice of partitions is used again. The pointer is
// valid until the next AddTopic.
func (f *FetchResponse) AddTopic(name string, id [16]byte) *FetchTopicResponse {
	f.Topics = next(f.Topics)
	t := &f.Topics[len(f.Topics)-1]
	t.Name, t.ID, t.Partitions = name, id, t.Partitions[:0]
	return t
}

// AddPartition appends a partition without records, whose offsets are unknown (-1). The pointer is valid
// until the next AddPartition.
func (t *FetchTopicResponse) AddPartition(partition int32) *FetchPartitionResponse {
	t.Partitions = append(t.Partitions, FetchPartitionResponse{
		Partition: partition, HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1, PreferredReadReplica: -1,
	})
	return &t.Partitions[len(t.Partitions)-1]
}

// Reply appends header and body to a reply: the bytes in a buffer of the reply, the ranges between them.
// What releases the ranges' files is for the caller to add (frame.Reply.OnRelease).
func (f *FetchResponse) Reply(r *frame.Reply, h Header) {
	flex := Flexible(KeyFetch, h.Version)
	e := fetchEncoder{reply: r, version: h.Version, flex: flex, cuts: f.cuts[:0]}
	buf := r.Buffer()
	e.dst = AppendResponseHeader(buf.B, h)
	e.dst = appendInt32(e.dst, f.ThrottleMs)
	if h.Version >= 7 {
		e.dst = appendInt16(e.dst, f.ErrorCode)
		e.dst = appendInt32(e.dst, f.SessionID)
	}
	e.dst = appendLength(e.dst, len(f.Topics), flex)
	for i := range f.Topics {
		e.topic(&f.Topics[i])
	}
	switch {
	case h.Version >= 16:
		e.dst = appendEndpoints(e.dst, f.Endpoints)
	case flex:
		e.dst = append(e.dst, 0)
	}
	buf.B, f.cuts = e.dst, e.cuts
	e.parts(f)
}

// fetchEncoder appends to one buffer and remembers where in it ranges belong; the buffer may move while
// it grows, so the parts are given to the reply at the end.
type fetchEncoder struct {
	reply   *frame.Reply
	version int16
	flex    bool
	dst     []byte
	cuts    []int // where partitions' ranges belong, in order
}

func (e *fetchEncoder) topic(t *FetchTopicResponse) {
	if e.version >= 13 {
		e.dst = append(e.dst, t.ID[:]...)
	} else {
		e.dst = appendString(e.dst, t.Name, e.flex)
	}
	e.dst = appendLength(e.dst, len(t.Partitions), e.flex)
	for i := range t.Partitions {
		e.partition(&t.Partitions[i])
	}
	e.dst = appendNoTags(e.dst, e.flex)
}

func (e *fetchEncoder) partition(p *FetchPartitionResponse) {
	dst := appendInt32(e.dst, p.Partition)
	dst = appendInt16(dst, p.ErrorCode)
	dst = appendInt64(dst, p.HighWatermark)
	dst = appendInt64(dst, p.LastStableOffset)
	if e.version >= 5 {
		dst = appendInt64(dst, p.LogStartOffset)
	}
	dst = e.aborted(dst, p.Aborted)
	if e.version >= 11 {
		dst = appendInt32(dst, p.PreferredReadReplica)
	}
	dst = appendLength(dst, int(p.recordsBytes()), e.flex)
	if len(p.Ranges) > 0 {
		e.cuts = append(e.cuts, len(dst))
	}
	if e.flex {
		dst = p.appendTags(dst)
	}
	e.dst = dst
}

func (e *fetchEncoder) aborted(dst []byte, txns []AbortedTxn) []byte {
	if txns == nil {
		return appendLength(dst, -1, e.flex)
	}
	dst = appendLength(dst, len(txns), e.flex)
	for _, t := range txns {
		dst = appendInt64(dst, t.ProducerID)
		dst = appendInt64(dst, t.FirstOffset)
		dst = appendNoTags(dst, e.flex)
	}
	return dst
}

func (p *FetchPartitionResponse) recordsBytes() int64 {
	n := int64(0)
	for _, g := range p.Ranges {
		n += g.Len
	}
	return n
}

func (p *FetchPartitionResponse) appendTags(dst []byte) []byte {
	count := byte(0)
	if p.Diverging.Known {
		count++
	}
	if p.Leader.Known {
		count++
	}
	dst = append(dst, count)
	if p.Diverging.Known {
		dst = append(dst, 0, 4+8+1)
		dst = appendInt32(dst, p.Diverging.Epoch)
		dst = appendInt64(dst, p.Diverging.EndOffset)
		dst = append(dst, 0)
	}
	if p.Leader.Known {
		dst = appendLeaderHint(dst, 1, p.Leader)
	}
	return dst
}

// parts gives the reply its bytes and ranges.
func (e *fetchEncoder) parts(f *FetchResponse) {
	from, cut := 0, 0
	for i := range f.Topics {
		for j := range f.Topics[i].Partitions {
			p := &f.Topics[i].Partitions[j]
			if len(p.Ranges) == 0 {
				continue
			}
			e.reply.Bytes(e.dst[from:e.cuts[cut]])
			from = e.cuts[cut]
			cut++
			for _, g := range p.Ranges {
				e.reply.Range(g)
			}
		}
	}
	e.reply.Bytes(e.dst[from:])
}
