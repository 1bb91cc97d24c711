package hang

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/batch"
)

// Versions that need no topic ids.
const (
	produceVersion = 8
	fetchVersion   = 11
)

// answerLimit is how long an answer may take, of a disk that works.
const answerLimit = 60 * time.Second

// peer is one connection, on which requests may be sent ahead.
type peer struct {
	net.Conn
	in   *bufio.Reader
	f    *kmsg.RequestFormatter
	sent int32
	buf  []byte
}

func dial(addr string) (*peer, error) {
	c, err := net.DialTimeout("tcp", addr, answerLimit)
	if err != nil {
		return nil, err
	}
	return &peer{Conn: c, in: bufio.NewReaderSize(c, 4<<10), f: kmsg.NewRequestFormatter(kmsg.FormatterClientID("hang"))}, nil
}

// send sends a request and does not wait for its answer.
func (p *peer) send(r kmsg.Request) error {
	p.buf = p.f.AppendRequest(p.buf[:0], r, p.sent)
	p.sent++
	_, err := p.Write(p.buf)
	return err
}

// receive reads the next answer into resp, whose request was not a flexible one.
func (p *peer) receive(resp kmsg.Response) error {
	var head [8]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint32(head[:])) - 4
	if n < 0 || n > 64<<20 {
		return fmt.Errorf("an answer of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(p.in, body); err != nil {
		return err
	}
	return resp.ReadFrom(body)
}

// partition is where a request goes.
type partition struct {
	topic string
	n     int32
}

// produce is one batch to one partition.
func produce(to partition, records []byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = produceVersion, 1, int32(answerLimit.Milliseconds())
	t := kmsg.NewProduceRequestTopic()
	t.Topic = to.topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = to.n, records
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

func (p *peer) produced() error {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = produceVersion
	if err := p.receive(resp); err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

// fetch asks for some bytes of one partition.
func fetch(of partition, offset int64, bytes int32) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.ReplicaID, r.MinBytes, r.MaxBytes, r.MaxWaitMillis, r.SessionEpoch = fetchVersion, -1, 1, bytes, 100, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = of.topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = of.n, offset, bytes, -1
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

func (p *peer) fetched() (bytes int, err error) {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = fetchVersion
	if err := p.receive(resp); err != nil {
		return 0, err
	}
	part := &resp.Topics[0].Partitions[0]
	return len(part.RecordBatches), kerr.ErrorForCode(part.ErrorCode)
}

// records is one batch of about so many bytes.
func records(t testing.TB, bytes int) []byte {
	t.Helper()
	b := batch.NewBuilder()
	value := make([]byte, bytes)
	for i := range value {
		value[i] = byte(i * 7)
	}
	b.Add(time.Now().UnixMilli(), nil, value, nil...)
	out, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return out
}
