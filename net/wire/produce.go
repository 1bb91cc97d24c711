package wire

import "sync"

// ProduceRequest is Produce 3 to 13. It is used again: take one with GetProduceRequest.
type ProduceRequest struct {
	TransactionalID string // "" when null
	Acks            int16
	TimeoutMs       int32
	Topics          []ProduceTopic
}

// ProduceTopic has a name up to version 12, an id from 13.
type ProduceTopic struct {
	Name       string
	ID         [16]byte
	Partitions []ProducePartition
}

// ProducePartition is what goes to one partition.
type ProducePartition struct {
	Partition int32
	Records   []byte // a view on the frame; nil: null
}

var produceRequests = sync.Pool{New: func() any { return new(ProduceRequest) }}

// GetProduceRequest takes a request from the pool.
func GetProduceRequest() *ProduceRequest { return produceRequests.Get().(*ProduceRequest) }

// Put gives the request back to the pool. Its strings stay valid.
func (q *ProduceRequest) Put() {
	kept := 0
	topics := q.Topics[:cap(q.Topics)]
	for i := range topics {
		clear(topics[i].Partitions[:cap(topics[i].Partitions)]) // or they would keep frames
		topics[i].Partitions = topics[i].Partitions[:0]
		kept += 1 + cap(topics[i].Partitions)
	}
	if kept <= keptElems {
		produceRequests.Put(q)
	}
}

// keptElems is how many topics and partitions an object may have room for when it goes to its pool.
const keptElems = 4096

// Decode reads a body. What is decoded borrows the records from it.
func (q *ProduceRequest) Decode(version int16, body []byte) error {
	r := reader{p: body, flex: Flexible(KeyProduce, version)}
	q.Topics = q.Topics[:0]
	if q.TransactionalID = ""; version >= 3 {
		q.TransactionalID = string(r.nullableString("transactional id"))
	}
	q.Acks = r.int16("acks")
	q.TimeoutMs = r.int32("timeout")
	for n := r.array("topics", 4); n > 0 && r.err == nil; n-- {
		q.Topics = next(q.Topics)
		q.Topics[len(q.Topics)-1].decode(&r, version)
	}
	r.tags(nil)
	return r.done(KeyProduce, version)
}

func (t *ProduceTopic) decode(r *reader, version int16) {
	readTopic(r, version >= 13, &t.Name, &t.ID)
	t.Partitions = t.Partitions[:0]
	for n := r.array("partitions", 5); n > 0 && r.err == nil; n-- {
		t.Partitions = append(t.Partitions, ProducePartition{
			Partition: r.int32("partition"),
			Records:   r.nullableBytes("records"),
		})
		r.tags(nil)
	}
	r.tags(nil)
}

// readTopic reads a topic's id, or its name, which is kept when it is the same as before.
func readTopic(r *reader, byID bool, name *string, id *[16]byte) {
	if byID {
		*name, *id = "", r.uuid("topic id")
		return
	}
	*id = [16]byte{}
	if s := r.string("topic"); *name != string(s) {
		*name = string(s)
	}
}

// next makes room for one more element, which is what it was before: its slices can be used again.
func next[T any](s []T) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	var zero T
	return append(s, zero)
}

// ProduceResponse is Produce 3 to 13.
type ProduceResponse struct {
	Topics     []ProduceTopicResponse
	ThrottleMs int32
	Endpoints  []Endpoint // of hinted leaders; sent from version 10
}

// ProduceTopicResponse has the name or the id that the request had.
type ProduceTopicResponse struct {
	Name       string
	ID         [16]byte
	Partitions []ProducePartitionResponse
}

// ProducePartitionResponse is the outcome of one partition.
type ProducePartitionResponse struct {
	Partition       int32
	ErrorCode       int16
	BaseOffset      int64 // -1 with an error
	LogAppendTimeMs int64 // -1 on CreateTime topics
	LogStartOffset  int64 // -1 with an error; sent from version 5
	RecordErrors    []RecordError
	ErrorMessage    string     // "": null; sent from version 8
	Leader          LeaderHint // sent from version 10
}

// RecordError names a record that made its batch fail (KIP-467); sent from version 8.
type RecordError struct {
	BatchIndex int32
	Message    string // "": null
}

// Reset empties the response and keeps its memory.
func (p *ProduceResponse) Reset() {
	*p = ProduceResponse{Topics: p.Topics[:0], Endpoints: p.Endpoints[:0]}
}

// AddTopic appends a topic without partitions, whose slice of partitions is used again. The pointer is
// valid until the next AddTopic.
func (p *ProduceResponse) AddTopic(name string, id [16]byte) *ProduceTopicResponse {
	p.Topics = next(p.Topics)
	t := &p.Topics[len(p.Topics)-1]
	t.Name, t.ID, t.Partitions = name, id, t.Partitions[:0]
	return t
}

// AddPartition appends a partition whose offsets and times are unknown (-1). The pointer is valid until
// the next AddPartition.
func (t *ProduceTopicResponse) AddPartition(partition int32) *ProducePartitionResponse {
	t.Partitions = append(t.Partitions, ProducePartitionResponse{
		Partition: partition, BaseOffset: -1, LogAppendTimeMs: -1, LogStartOffset: -1,
	})
	return &t.Partitions[len(t.Partitions)-1]
}

// Append encodes the body.
func (p *ProduceResponse) Append(dst []byte, version int16) []byte {
	flex := Flexible(KeyProduce, version)
	dst = appendLength(dst, len(p.Topics), flex)
	for i := range p.Topics {
		t := &p.Topics[i]
		if version >= 13 {
			dst = append(dst, t.ID[:]...)
		} else {
			dst = appendString(dst, t.Name, flex)
		}
		dst = appendLength(dst, len(t.Partitions), flex)
		for j := range t.Partitions {
			dst = t.Partitions[j].append(dst, version, flex)
		}
		dst = appendNoTags(dst, flex)
	}
	dst = appendInt32(dst, p.ThrottleMs)
	if !flex {
		return dst
	}
	if version < 10 {
		return append(dst, 0)
	}
	return appendEndpoints(dst, p.Endpoints)
}

func (p *ProducePartitionResponse) append(dst []byte, version int16, flex bool) []byte {
	dst = appendInt32(dst, p.Partition)
	dst = appendInt16(dst, p.ErrorCode)
	dst = appendInt64(dst, p.BaseOffset)
	dst = appendInt64(dst, p.LogAppendTimeMs)
	if version >= 5 {
		dst = appendInt64(dst, p.LogStartOffset)
	}
	if version >= 8 {
		dst = appendLength(dst, len(p.RecordErrors), flex)
		for _, e := range p.RecordErrors {
			dst = appendInt32(dst, e.BatchIndex)
			dst = appendStringOrNull(dst, e.Message, flex)
			dst = appendNoTags(dst, flex)
		}
		dst = appendStringOrNull(dst, p.ErrorMessage, flex)
	}
	if version >= 10 && p.Leader.Known {
		return appendLeaderHint(append(dst, 1), 0, p.Leader)
	}
	return appendNoTags(dst, flex)
}
