package brokerbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/bench/rawload"
	"platter/bench/stats"
)

// Options of one bench.
type Options struct {
	Exe         string   // the platter binary to start
	Dir         string   // parent of a temporary directory; it decides which disk is measured
	BatchBytes  []int    // one row of the result each
	RecordBytes int      // value bytes of a record
	RunBytes    int64    // payload of one run
	Runs        int      // pairs a row
	InFlight    int      // unanswered produce requests
	FetchBytes  int32    // max bytes of a fetch request
	Acks        int16    // of produce requests
	Settings    []string // further broker settings, name=value
	ProfilePath string   // a CPU profile of the broker during the last row's runs goes here
	Progress    io.Writer
}

// Row is one batch size: the bare program, the broker, and the ratios of neighbouring runs.
type Row struct {
	BatchBytes int            `json:"batch_bytes"`
	Bare       []stats.Sample `json:"bare"`
	Broker     []stats.Sample `json:"broker"`
	PerCPU     stats.Ratio    `json:"bytes_per_cpu_second_ratio"`
	Throughput stats.Ratio    `json:"bytes_per_second_ratio"`
}

// Result is a whole bench. Durability is what an acknowledgement promised: "pagecache".
type Result struct {
	Bench       string `json:"bench"`
	Durability  string `json:"durability"`
	Acks        int16  `json:"acks,omitempty"`
	FetchBytes  int32  `json:"fetch_bytes,omitempty"`
	RecordBytes int    `json:"record_bytes"`
	Rows        []Row  `json:"rows"`
}

// session is the two processes of one bench, over one temporary directory.
type session struct {
	o      Options
	dir    string
	broker *child
	admin  *kadm.Client
	client *kgo.Client
}

func open(ctx context.Context, o Options) (*session, error) {
	dir, err := tempDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &session{o: o, dir: dir}
	if s.broker, err = startBroker(ctx, o.Exe, dir, o.Settings); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.broker.addr)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.admin = kadm.NewClient(s.client)
	return s, nil
}

func (s *session) close() error {
	if s.client != nil {
		s.client.Close()
	}
	if s.broker != nil {
		s.broker.stop()
	}
	return os.RemoveAll(s.dir)
}

func (s *session) createTopic(ctx context.Context, name string) error {
	max := "104857600"
	_, err := s.admin.CreateTopic(ctx, 1, 1, map[string]*string{"max.message.bytes": &max}, name)
	return err
}

func (s *session) deleteTopic(ctx context.Context, name string) error {
	_, err := s.admin.DeleteTopic(ctx, name)
	return err
}

// pairs runs both sides Runs times, swapping which goes first.
func (s *session) pairs(ctx context.Context, row *Row, bare, broker func() (stats.Sample, error)) error {
	for i := range s.o.Runs {
		for j := range 2 {
			if err := ctx.Err(); err != nil {
				return err
			}
			side, into := bare, &row.Bare
			if i%2 != j {
				side, into = broker, &row.Broker
			}
			sample, err := side()
			if err != nil {
				return err
			}
			*into = append(*into, sample)
		}
		fmt.Fprintf(s.o.Progress, "\r%d-byte batches: pair %d of %d  ", row.BatchBytes, i+1, s.o.Runs)
	}
	fmt.Fprint(s.o.Progress, "\r\x1b[K")
	row.PerCPU = stats.PairRatio(row.Broker, row.Bare, stats.Sample.BytesPerCPUSecond)
	row.Throughput = stats.PairRatio(row.Broker, row.Bare, stats.Sample.BytesPerSecond)
	return nil
}

// Produce measures socket to log against ceiling's sink. The payload is the record batches; both sides
// receive the very same frames.
func Produce(ctx context.Context, o Options) (res *Result, err error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	bare, err := startBare(o.Exe, "--sink", s.dir)
	if err != nil {
		return nil, err
	}
	defer bare.stop()
	res = &Result{Bench: "produce", Durability: "pagecache", Acks: o.Acks, RecordBytes: o.RecordBytes}
	for n, size := range o.BatchBytes {
		b, _, err := rawload.Shape{BatchBytes: size, RecordBytes: o.RecordBytes}.Batch()
		if err != nil {
			return nil, err
		}
		topic := fmt.Sprintf("bench-%d", size)
		frames := [][]byte{rawload.ProduceFrame(topic, 0, o.Acks, b)}
		count := int(max(1, o.RunBytes/int64(len(b))))
		bytes := int64(count) * int64(len(b))
		row := Row{BatchBytes: size}
		stopProfile := s.profile(ctx, n == len(o.BatchBytes)-1)
		err = s.pairs(ctx, &row, func() (stats.Sample, error) {
			return bare.measure(func() (int64, error) {
				return bytes, rawload.Pipeline(bare.addr, frames, count, o.InFlight, 8, nil)
			})
		}, func() (stats.Sample, error) {
			if err := s.createTopic(ctx, topic); err != nil {
				return stats.Sample{}, err
			}
			sample, err := s.broker.measure(func() (int64, error) {
				return bytes, rawload.Pipeline(s.broker.addr, frames, count, o.InFlight, 0, rawload.CheckProduce)
			})
			return sample, errors.Join(err, s.deleteTopic(ctx, topic))
		})
		if err := errors.Join(err, stopProfile()); err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, row)
	}
	return res, nil
}

// Fetch measures log to socket, from the page cache, against ceiling's sendfile over the very same
// segment file and with the same send buffer: how the pages came to be in the cache, and how much of them
// a socket holds, weighs on what sending them costs.
func Fetch(ctx context.Context, o Options) (res *Result, err error) {
	o.Settings = append([]string{
		fmt.Sprintf("log.segment.bytes=%d", segmentBytes), "socket.send.buffer.bytes=" + sendBufferBytes,
	}, o.Settings...)
	o.RunBytes = min(o.RunBytes, segmentBytes-segmentBytes/8)
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	res = &Result{Bench: "fetch", Durability: "pagecache", RecordBytes: o.RecordBytes, FetchBytes: o.FetchBytes}
	for n, size := range o.BatchBytes {
		row, err := s.fetchRow(ctx, size, n == len(o.BatchBytes)-1)
		if err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, row)
	}
	return res, nil
}

const (
	segmentBytes    = 1<<31 - 1 // the largest that Kafka's settings allow
	sendBufferBytes = "102400"  // the broker's default
)

func (s *session) fetchRow(ctx context.Context, size int, last bool) (row Row, err error) {
	o := s.o
	row = Row{BatchBytes: size}
	b, records, err := rawload.Shape{BatchBytes: size, RecordBytes: o.RecordBytes}.Batch()
	if err != nil {
		return row, err
	}
	topic := fmt.Sprintf("bench-%d", size)
	if err := s.createTopic(ctx, topic); err != nil {
		return row, err
	}
	count := int(max(1, o.RunBytes/int64(len(b))))
	bytes := int64(count) * int64(len(b))
	frames := [][]byte{rawload.ProduceFrame(topic, 0, 1, b)}
	if err := rawload.Pipeline(s.broker.addr, frames, count, o.InFlight, 0, rawload.CheckProduce); err != nil {
		return row, err
	}
	bare, err := startBare(o.Exe, "--source", filepath.Join(s.dir, "data", topic+"-0", "00000000000000000000.log"),
		"--send-buffer", sendBufferBytes)
	if err != nil {
		return row, err
	}
	defer bare.stop()
	stopProfile := s.profile(ctx, last)
	err = s.pairs(ctx, &row, func() (stats.Sample, error) {
		return bare.measure(func() (int64, error) {
			return rawload.FetchBare(bare.addr, o.FetchBytes, bytes, bytes)
		})
	}, func() (stats.Sample, error) {
		return s.broker.measure(func() (int64, error) {
			return rawload.Fetch(s.broker.addr, topic, o.FetchBytes, bytes, int64(len(b)), records)
		})
	})
	return row, errors.Join(err, stopProfile(), s.deleteTopic(ctx, topic))
}

// profile starts a CPU profile of the broker when it is wanted; the returned func waits for it.
func (s *session) profile(ctx context.Context, last bool) func() error {
	if s.o.ProfilePath == "" || !last {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- s.broker.saveProfile(ctx, s.o.ProfilePath, 10*time.Second) }()
	return func() error { return <-done }
}
