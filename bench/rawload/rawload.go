// Package rawload moves bytes in and out of a broker (or of the bare programs of bench/ceiling) with as
// little work of its own as it can: requests are encoded once and sent again and again, answers are read
// and checked, payloads are thrown away unread by the kernel where it can.
//
// It measures a server, not a client: throughput and the server's CPU time are what its figures are about.
package rawload

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/batch"
)

// Shape is what is sent: batches of BatchBytes at most, of records of RecordBytes (value bytes).
type Shape struct {
	BatchBytes  int
	RecordBytes int
}

// Batch builds one batch of incompressible records that is as near to the shape's size as whole records
// allow, and says how many records it holds.
func (s Shape) Batch() (batch.Batch, int, error) {
	rnd := rand.New(rand.NewPCG(7, uint64(s.BatchBytes)))
	value := make([]byte, s.RecordBytes)
	for i := range value {
		value[i] = byte(rnd.Uint32())
	}
	const recordOverheadBytes = 12
	n := max(1, (s.BatchBytes-batch.HeaderBytes)/(s.RecordBytes+recordOverheadBytes))
	b := batch.NewBuilder()
	now := time.Now().UnixMilli()
	for range n {
		b.Add(now, nil, value)
	}
	built, err := b.Build()
	return built, n, err
}

var format = kmsg.NewRequestFormatter(kmsg.FormatterClientID("platter-bench"))

const (
	produceVersion = 9
	fetchVersion   = 12
)

// ProduceFrame is a whole Produce request with its length prefix.
func ProduceFrame(topic string, partition int32, acks int16, b batch.Batch) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = produceVersion, acks, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, b
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return format.AppendRequest(nil, req, 1)
}

// CheckProduce reads the answer of a ProduceFrame without its length prefix.
func CheckProduce(body []byte) error {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = produceVersion
	// Behind the correlation id comes the header's empty tag section.
	if len(body) < 5 {
		return io.ErrUnexpectedEOF
	}
	if err := resp.ReadFrom(body[5:]); err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("produce to %s/%d: error code %d", t.Topic, p.Partition, p.ErrorCode)
			}
		}
	}
	return nil
}

// Pipeline sends count frames, taken in turn from frames, on one connection, with at most inFlight
// unanswered, and reads an answer for each: of fixedBytes bytes, or length-prefixed and checked.
func Pipeline(addr string, frames [][]byte, count, inFlight, fixedBytes int, check func([]byte) error) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	room := make(chan struct{}, inFlight)
	failed := make(chan error, 1)
	go func() { failed <- answers(c, count, fixedBytes, check, room) }()
	for i := range count {
		select {
		case room <- struct{}{}:
		case err := <-failed:
			return fmt.Errorf("after %d requests: %w", i, err)
		}
		if _, err := c.Write(frames[i%len(frames)]); err != nil {
			return err
		}
	}
	return <-failed
}

func answers(c net.Conn, count, fixedBytes int, check func([]byte) error, room chan struct{}) error {
	r := bufio.NewReader(c)
	buf := make([]byte, 64<<10)
	for range count {
		n := fixedBytes
		if n == 0 {
			if _, err := io.ReadFull(r, buf[:4]); err != nil {
				return err
			}
			n = int(binary.BigEndian.Uint32(buf))
		}
		if n > len(buf) {
			return fmt.Errorf("answer of %d bytes", n)
		}
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return err
		}
		if check != nil {
			if err := check(buf[:n]); err != nil {
				return err
			}
		}
		<-room
	}
	return nil
}

// fetcher asks for one partition on one connection, with one request that is patched.
type fetcher struct {
	c     net.Conn
	frame []byte
	at    int // where the fetch offset stands in the frame
}

// Fetch reads wantBytes of records from offset 0 on, a request of maxBytes after the other, and returns
// the record bytes read. Each batch of the topic is batchBytes long and holds records records.
func Fetch(addr, topic string, maxBytes int32, wantBytes, batchBytes int64, records int) (int64, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	f := newFetcher(c, topic, maxBytes)
	var got int64
	for got < wantBytes {
		n, err := f.next(got / batchBytes * int64(records))
		if err != nil {
			return got, err
		}
		if n%batchBytes != 0 || n == 0 {
			return got, fmt.Errorf("%d record bytes are no whole batches of %d", n, batchBytes)
		}
		got += n
	}
	return got, nil
}

func newFetcher(c net.Conn, topic string, maxBytes int32) *fetcher {
	const marker = 0x5eed5eed5eed5eed
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = fetchVersion, 500, 1, maxBytes, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = marker, maxBytes
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	f := &fetcher{c: c, frame: format.AppendRequest(nil, req, 1)}
	for f.at = 0; binary.BigEndian.Uint64(f.frame[f.at:]) != marker; f.at++ {
	}
	return f
}

// next sends one request and throws its records away; it returns how many bytes they were.
func (f *fetcher) next(offset int64) (int64, error) {
	binary.BigEndian.PutUint64(f.frame[f.at:], uint64(offset))
	if _, err := f.c.Write(f.frame); err != nil {
		return 0, err
	}
	// Everything before the records is shorter than this, and the records are longer than what is left of it.
	var head [256]byte
	if _, err := io.ReadFull(f.c, head[:]); err != nil {
		return 0, err
	}
	left := int64(binary.BigEndian.Uint32(head[:])) + 4 - int64(len(head))
	size, err := recordsBytes(head[4:])
	if err != nil {
		return 0, err
	}
	if left < 0 {
		return 0, fmt.Errorf("fetch at offset %d: the answer has only %d bytes", offset, left+int64(len(head)))
	}
	return size, Discard(f.c, left)
}

// recordsBytes walks an answer's head (version 12, one topic, one partition) to the length of its records.
func recordsBytes(p []byte) (int64, error) {
	const (
		untilTopics = 4 + 1 + 4 + 2 + 4 // correlation id, tags, throttle, error, session
		fixed       = 4 + 2 + 8 + 8 + 8 // partition, error, high watermark, last stable, log start
	)
	if code := int16(binary.BigEndian.Uint16(p[untilTopics-6:])); code != 0 {
		return 0, fmt.Errorf("fetch: error code %d", code)
	}
	p = p[untilTopics:]
	if p[0] != 2 {
		return 0, errors.New("fetch: not one topic in the answer")
	}
	nameBytes := int(p[1]) - 1
	p = p[2+nameBytes:]
	if p[0] != 2 {
		return 0, errors.New("fetch: not one partition in the answer")
	}
	p = p[1:]
	if code := int16(binary.BigEndian.Uint16(p[4:])); code != 0 {
		return 0, fmt.Errorf("fetch: partition error code %d", code)
	}
	p = p[fixed:]
	aborted, n := binary.Uvarint(p)
	if aborted > 1 {
		return 0, errors.New("fetch: aborted transactions in the answer")
	}
	p = p[n+4:] // preferred read replica
	size, _ := binary.Uvarint(p)
	return int64(size) - 1, nil
}
