package brokerbench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"platter/bench/rawload"
	"platter/bench/stats"
)

// Latency is what an open loop of produces, acknowledged by all replicas in sync, has waited for: from when each was to be
// sent. Milliseconds.
type Latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func latencyOf(ds []time.Duration) Latency {
	if len(ds) == 0 {
		return Latency{}
	}
	slices.Sort(ds)
	at := func(q float64) float64 {
		return float64(ds[min(int(q*float64(len(ds))), len(ds)-1)].Microseconds()) / 1000
	}
	return Latency{Count: len(ds), P50: at(0.5), P99: at(0.99), Max: at(1)}
}

const (
	besideTopic = "bench-beside"
	// besideEvery and besideBytes are the producers' load: 13 MB/s.
	besideEvery = 5 * time.Millisecond
	besideBytes = 64 << 10
)

// refillsBusy refills while producers keep going: one to the log that is filled again, one to another partition of the same
// leader, whose replicas are the two brokers that are well.
func (t *trio) refillsBusy(ctx context.Context, res *Replication, bytes int64) error {
	if err := t.create(ctx, besideTopic, []int32{0, 1}); err != nil {
		return err
	}
	beside := func(work func() error) ([]time.Duration, error) {
		stop, done := make(chan struct{}), make(chan error, 2)
		var ds []time.Duration
		for _, topic := range []string{besideTopic, replicationTopic} {
			p, err := t.openLoop(topic)
			if err != nil {
				return nil, err
			}
			go func() {
				err := p.run(stop)
				if topic == besideTopic {
					ds = p.took
				}
				done <- err
			}()
		}
		err := work()
		close(stop)
		return ds, errors.Join(err, <-done, <-done)
	}
	var quiet, busy []time.Duration
	for range t.o.Runs {
		ds, err := beside(func() error { time.Sleep(time.Second); return nil })
		if err != nil {
			return err
		}
		quiet = append(quiet, ds...)
		ds, err = beside(func() error {
			s, err := t.refill(ctx, bytes)
			res.Busy = append(res.Busy, s)
			return err
		})
		if err != nil {
			return err
		}
		busy = append(busy, ds...)
	}
	res.Quiet, res.Beside = latencyOf(quiet), latencyOf(busy)
	return nil
}

// openLoop is produces at fixed times on one connection.
type openLoop struct {
	strict bool // a refusal is an error; a replica's death begins a new leader epoch, in which what waits is refused
	conn   net.Conn
	frame  []byte
	sent   chan time.Time // when each was to be sent
	took   []time.Duration
}

func (t *trio) openLoop(topic string) (*openLoop, error) {
	b, _, err := rawload.Shape{BatchBytes: besideBytes, RecordBytes: t.o.RecordBytes}.Batch()
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", t.brokers[0].addr)
	return &openLoop{strict: topic == besideTopic, conn: conn, frame: rawload.ProduceFrame(topic, 0, -1, b), sent: make(chan time.Time, 1<<14)}, err
}

// run sends until stop, and waits for the answers.
func (p *openLoop) run(stop <-chan struct{}) error {
	defer p.conn.Close()
	answered := make(chan error, 1)
	go func() { answered <- p.answers() }()
	for next := time.Now(); ; next = next.Add(besideEvery) {
		select {
		case <-stop:
			close(p.sent)
			return <-answered
		case err := <-answered:
			return err
		case <-time.After(time.Until(next)):
		}
		if _, err := p.conn.Write(p.frame); err != nil {
			return err
		}
		p.sent <- next
	}
}

func (p *openLoop) answers() error {
	r := bufio.NewReader(p.conn)
	var head [4]byte
	for at := range p.sent {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		if err := rawload.CheckProduce(body); err != nil && p.strict {
			return err
		}
		p.took = append(p.took, time.Since(at))
	}
	return nil
}

// Many is what partitions cost in which nothing happens: the brokers' share of a processor when there is no load, and CPU
// seconds of a small batch in another partition, with them and without.
type Many struct {
	Partitions  int            `json:"partitions"`
	IdlePercent []float64      `json:"idle_percent"` // of each broker
	BatchBytes  int            `json:"batch_bytes"`
	Without     []stats.Sample `json:"small_batches_without"` // of the leader
	With        []stats.Sample `json:"small_batches_with"`
	Ratio       stats.Ratio    `json:"with_per_cpu_ratio"`
}

const (
	manyTopic      = "bench-many"
	manyPartitions = 2000
	manyBatchBytes = 4 << 10
	manyIdle       = 10 * time.Second
)

func (t *trio) many(ctx context.Context, m *Many) error {
	m.Partitions, m.BatchBytes = manyPartitions, manyBatchBytes
	small := func() (s stats.Sample, err error) {
		o := t.o
		defer func() { t.o = o }()
		t.o.RecordBytes, t.o.RunBytes, t.o.InFlight = min(o.RecordBytes, manyBatchBytes), min(o.RunBytes, 32<<20), 64
		bytes, send, err := t.load(manyBatchBytes)
		if err != nil {
			return s, err
		}
		return t.brokers[0].measure(func() (int64, error) { return bytes, send() })
	}
	if err := t.topic(ctx, 3); err != nil {
		return err
	}
	for range t.o.Runs {
		s, err := small()
		if err != nil {
			return err
		}
		m.Without = append(m.Without, s)
	}
	partitions := make([][]int32, manyPartitions)
	for i := range partitions {
		lead := int32(i % 3)
		partitions[i] = []int32{lead, (lead + 1) % 3, (lead + 2) % 3}
	}
	if err := t.create(ctx, manyTopic, partitions...); err != nil {
		return err
	}
	time.Sleep(manyIdle / 2) // leaders and followers take up their parts
	before, err := t.cpu()
	if err != nil {
		return err
	}
	time.Sleep(manyIdle)
	after, err := t.cpu()
	if err != nil {
		return err
	}
	for i := range after {
		m.IdlePercent = append(m.IdlePercent, 100*(after[i]-before[i]).Seconds()/manyIdle.Seconds())
	}
	for range t.o.Runs {
		s, err := small()
		if err != nil {
			return err
		}
		m.With = append(m.With, s)
	}
	m.Ratio = stats.PairRatio(m.With, m.Without, stats.Sample.BytesPerCPUSecond)
	return nil
}

// fetches are the answers to fetches that a broker has given.
type fetches struct{ requests, bytes float64 }

func (c *child) fetched(ctx context.Context) (f fetches, err error) {
	body, err := get(ctx, "http://"+c.http+"/metrics")
	if err != nil {
		return f, err
	}
	defer body.Close()
	for s := bufio.NewScanner(body); s.Scan(); {
		into := map[bool]*float64{
			strings.HasPrefix(s.Text(), `kafka_network_requestmetrics_requests_total{request="Fetch"`):      &f.requests,
			strings.HasPrefix(s.Text(), `kafka_network_requestmetrics_responsebytes_total{request="Fetch"`): &f.bytes,
		}[true]
		if into == nil {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(s.Text()[strings.LastIndexByte(s.Text(), ' ')+1:], &v); err != nil {
			return f, err
		}
		*into += v
	}
	return f, nil
}
