package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/net/console"
	"platter/net/frame"
	"platter/net/server"
	"platter/net/wire"
	"platter/replication/replica"
)

// Produce. Versions 3 to 13. Behaviour:
//   - advertised from 0, because librdkafka drops compression otherwise (KAFKA-18659); 0 to 2 are
//     answered with UNSUPPORTED_VERSION until old message sets are served;
//   - exactly one record batch v2 a partition, else INVALID_RECORD; zstd from version 7 on;
//   - acks other than 0, 1 and -1 are INVALID_REQUIRED_ACKS; with acks=0 nothing is answered, and an
//     error closes the connection, so that the client asks for metadata again;
//   - acks=-1 waits for the high watermark, timeout.ms at most, then REQUEST_TIMED_OUT (the records may
//     be committed all the same);
//   - transactional ids are refused for good until there are transactions;
//   - from version 10 on, a client that came to the wrong broker is told the leader;
//   - from version 13 on topics are named by id.
func init() {
	versions.Register(wire.KeyProduce, 3, 13)
	versions.AdvertiseFrom(wire.KeyProduce, 0)
}

// adminClientID may write internal topics, as in Kafka.
const adminClientID = "__admin_client"

// produce is one request under way. It is used again once it is answered.
type produce struct {
	h     *Handler
	r     *server.Request
	req   *wire.ProduceRequest
	resp  wire.ProduceResponse
	parts []*producePart
	left  atomic.Int32  // parts not done, and one more while they are being queued
	stop  []func() bool // ends the watch over the wait for the high watermark
}

// producePart is what goes to one partition.
type producePart struct {
	p         *produce
	topic     string
	id        store.UUID // zero: named by name
	partition int32
	batch     [1]batch.Batch
	append    replica.Append
	out       commitlog.Appended
}

var produces = sync.Pool{New: func() any { return new(produce) }}

// Produce queues the batches of a produce to their partitions, in the order of the request.
func (h *Handler) Produce(r *server.Request) {
	h.awaitJoined(r.Gone())
	p := produces.Get().(*produce)
	p.h, p.r, p.req = h, r, wire.GetProduceRequest()
	if err := p.req.Decode(r.Version, r.Body); err != nil {
		p.free()
		r.Answer(nil, err)
		return
	}
	refused := p.refusal()
	n := 0
	for i := range p.req.Topics {
		n += len(p.req.Topics[i].Partitions)
	}
	p.room(n)
	p.left.Store(int32(n) + 1)
	var cancels []func()
	n = 0
	for i := range p.req.Topics {
		t := &p.req.Topics[i]
		name, err := p.topic(t, refused)
		for j := range t.Partitions {
			part := p.parts[n]
			n++
			part.topic, part.id, part.partition = name, store.UUID(t.ID), t.Partitions[j].Partition
			if cancel := part.queue(t.Partitions[j].Records, err); cancel != nil {
				cancels = append(cancels, cancel)
			}
		}
	}
	p.awaitCommit(cancels)
	p.done()
}

// room makes n parts. Each keeps its callback from one use to the next.
func (p *produce) room(n int) {
	for len(p.parts) < n {
		part := &producePart{p: p}
		part.append.Done = part.done
		p.parts = append(p.parts, part)
	}
}

// refusal is an error that holds for all partitions.
func (p *produce) refusal() error {
	switch {
	case versions.Support(wire.KeyProduce, p.r.Version) == wire.Refused:
		return refuse(UnsupportedVersion, "produce version %d is not supported, use 3 or later", p.r.Version)
	case p.req.Acks < -1 || p.req.Acks > 1:
		return refuse(InvalidRequiredAcks, "acks must be 0, 1 or -1, not %d", p.req.Acks)
	case p.req.TransactionalID != "":
		return refuse(TransactionalIDAuthorizationFailed, "transactions are not supported")
	}
	return nil
}

// topic settles a topic's name, and what is wrong with it.
func (p *produce) topic(t *wire.ProduceTopic, refused error) (string, error) {
	name := t.Name
	if p.r.Version >= 13 {
		known, ok := p.h.topicName(store.UUID(t.ID))
		if name = known; !ok && refused == nil {
			refused = errTopicID
		}
	}
	if refused == nil && isInternal(name) && string(p.r.ClientID) != adminClientID {
		refused = refuse(InvalidTopicException, "topic %s is internal", name)
	}
	return name, refused
}

// queue hands the batch to its replica, or answers with err.
func (part *producePart) queue(records []byte, err error) (cancel func()) {
	p := part.p
	part.batch[0] = records
	if err == nil {
		err = checkBatch(records, p.r.Version)
	}
	var to Partition
	if err == nil {
		to, err = p.h.leaderByID(store.TP{Topic: part.topic, Partition: part.partition}, part.id)
	}
	if err != nil {
		part.done(commitlog.Appended{Err: err})
		return nil
	}
	part.append.Batches, part.append.Acks = part.batch[:], p.req.Acks
	return to.Append(&part.append)
}

// checkBatch holds the records against Kafka's rules for a produce of this version (ProduceRequest's
// validateRecords), before they are looked at more closely on the way to the log.
func checkBatch(records []byte, version int16) error {
	switch {
	case len(records) == 0:
		return refuse(InvalidRecord, "produce requests with version %d must have a record batch for each partition", version)
	case len(records) > magicPos && records[magicPos] != 2:
		return refuse(InvalidRecord, "produce requests with version %d must have record batches of magic 2, not %d", version, int8(records[magicPos]))
	case len(records) < batch.HeaderBytes:
		return refuse(InvalidRecord, "a record batch of %d bytes is cut short", len(records))
	}
	size, err := batch.SizeOf(records)
	switch {
	case err != nil:
		return err
	case size > len(records):
		return refuse(InvalidRecord, "a record batch of %d bytes is cut short at %d", size, len(records))
	case size < len(records):
		return refuse(InvalidRecord, "produce requests with version %d must have exactly one record batch for each partition", version)
	case version < 7 && batch.Batch(records).Codec() == batch.Zstd:
		return refuse(UnsupportedCompressionType, "zstd needs produce version 7 or later, not %d", version)
	}
	return nil
}

// magicPos is where a batch's magic lies, in old formats too.
const magicPos = 16

// awaitCommit ends the waits for the high watermark after the client's timeout, or when it has gone.
func (p *produce) awaitCommit(cancels []func()) {
	if len(cancels) == 0 {
		return
	}
	cancel := func() {
		for _, c := range cancels {
			c()
		}
	}
	p.h.Metrics.WaitingProduces.Inc()
	timeout := time.Duration(max(p.req.TimeoutMs, 0)) * time.Millisecond
	p.stop = append(p.stop, p.h.Clock.AfterFunc(timeout, cancel), context.AfterFunc(p.r.Gone(), cancel))
}

// done takes one partition's outcome; it is the replica's callback.
func (part *producePart) done(a commitlog.Appended) {
	part.out = a
	p, m := part.p, part.p.h.Metrics
	size := float64(len(part.batch[0]))
	m.All.ProduceRequests.Inc()
	if a.Err == nil {
		records := float64(part.batch[0].Count())
		t := m.Topic(part.topic)
		t.ProduceRequests.Inc()
		for _, c := range [...]*console.TopicMetrics{m.All, t} {
			c.BytesIn.Add(size)
			c.RecordsIn.Add(records)
		}
	} else {
		m.All.FailedProduce.Inc()
		m.All.BytesRejected.Add(size)
		p.h.rejects.Warn("produce refused", "peer", p.r.Conn.Remote.String(), "client", string(p.r.ClientID),
			"topic", part.topic, "partition", part.partition, "code", codeOf(a.Err).String(), "err", a.Err)
	}
	p.done()
}

// done answers once every part is done.
func (p *produce) done() {
	if p.left.Add(-1) > 0 {
		return
	}
	for _, stop := range p.stop {
		stop()
	}
	if len(p.stop) > 0 {
		p.h.Metrics.WaitingProduces.Dec()
	}
	failed := p.respond()
	r := p.r
	var reply *frame.Reply
	var err error
	switch {
	case p.req.Acks == 0:
		if failed != nil {
			err = fmt.Errorf("produce with acks=0: %w", failed)
		}
	case versions.Support(wire.KeyProduce, r.Version) == wire.Refused:
		reply = encode(r.Header, p.oldResponse())
	default:
		reply = frame.New()
		buf := reply.Buffer()
		buf.B = p.resp.Append(wire.AppendResponseHeader(buf.B, r.Header), r.Version)
		reply.Bytes(buf.B)
	}
	p.free()
	r.Answer(reply, err)
}

// respond fills in the response; failed is the first partition's error.
func (p *produce) respond() (failed error) {
	p.resp.Reset()
	n := 0
	for i := range p.req.Topics {
		t := &p.req.Topics[i]
		rt := p.resp.AddTopic(t.Name, t.ID)
		for range t.Partitions {
			part := p.parts[n]
			n++
			if part.out.Err != nil && failed == nil {
				failed = part.out.Err
			}
			rt.Partitions = append(rt.Partitions, p.outcome(part))
		}
	}
	return failed
}

func (p *produce) outcome(part *producePart) wire.ProducePartitionResponse {
	a := &part.out
	code := codeOf(a.Err)
	c := call{Request: p.r}
	rp := wire.ProducePartitionResponse{
		Partition: part.partition, ErrorCode: p.h.count(c, code),
		BaseOffset: a.BaseOffset, LogAppendTimeMs: a.LogAppendTimeMs, LogStartOffset: a.LogStartOffset,
	}
	if a.Err == nil {
		return rp
	}
	rp.BaseOffset, rp.LogAppendTimeMs, rp.LogStartOffset = -1, -1, -1
	rp.ErrorMessage = *textOf(a.Err)
	var bad *batch.CorruptError
	if errors.As(a.Err, &bad) && bad.Record >= 0 {
		rp.RecordErrors = []wire.RecordError{{BatchIndex: bad.Record, Message: rp.ErrorMessage}}
	}
	rp.Leader = p.h.hint(code, part.topic, part.partition)
	if rp.Leader.Known {
		p.resp.Endpoints = withEndpoint(p.resp.Endpoints, p.h.Image(), rp.Leader.ID, c.listener())
	}
	return rp
}

// oldResponse is the response in the versions that are refused.
func (p *produce) oldResponse() *kmsg.ProduceResponse {
	old := kmsg.NewPtrProduceResponse()
	old.SetVersion(p.r.Version)
	for i := range p.resp.Topics {
		t := kmsg.NewProduceResponseTopic()
		t.Topic = p.resp.Topics[i].Name
		for _, q := range p.resp.Topics[i].Partitions {
			tp := kmsg.NewProduceResponseTopicPartition()
			tp.Partition, tp.ErrorCode, tp.BaseOffset = q.Partition, q.ErrorCode, -1
			t.Partitions = append(t.Partitions, tp)
		}
		old.Topics = append(old.Topics, t)
	}
	return old
}

// free gives p back; nothing of it is under way any more.
func (p *produce) free() {
	p.req.Put()
	for _, part := range p.parts {
		part.batch[0], part.out, part.topic = nil, commitlog.Appended{}, ""
	}
	p.h, p.r, p.req, p.stop = nil, nil, nil, nil
	if len(p.parts) <= partsKept {
		produces.Put(p)
	}
}

// partsKept bounds what an object that is used again holds on to.
const partsKept = 1024
