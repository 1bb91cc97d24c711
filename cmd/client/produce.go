package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ProduceOptions say how input becomes records.
type ProduceOptions struct {
	Topic        string
	Partition    int32  // -1: by the key's hash, records without a key in turn
	Delimiter    string // between records
	KeyDelimiter string // "": no keys in the input
	Key          []byte // of every record without one in the input; nil: null
	Headers      []kgo.RecordHeader
	NullEmpty    bool // an empty key or value is null
	Codec        string
	Acks         string
	TimestampMs  int64 // of every record; 0: now
	Count        int64 // above 0: stop after so many records
	DeliveryMax  time.Duration
	Files        []string  // each is one record; empty: records come from the reader
	Progress     io.Writer // nil: none
}

// Limits of what is in memory at a time.
const (
	bufferedRecordsMax = 100_000
	bufferedBytesMax   = 128 << 20
	batchBytesDefault  = 1_000_012 // Kafka's default max.message.bytes less what surrounds the records
	batchBytesMax      = 64 << 20
)

// Produce sends the records of in (or of the files) and waits until all are acknowledged. The count is of
// those that were, whatever the error.
func (o Options) Produce(ctx context.Context, in io.Reader, c ProduceOptions) (sent int64, err error) {
	batchMax, err := o.batchBytes(ctx, c.Topic)
	if err != nil {
		return 0, err
	}
	opts, err := c.clientOptions(batchMax)
	if err != nil {
		return 0, err
	}
	cl, err := o.Connect(ctx, opts...)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	s := &sender{ProduceOptions: c, cl: cl, total: -1}
	next := s.fileRecords(int(batchMax))
	if len(c.Files) == 0 {
		next = newSplitter(s.counted(in), c.Delimiter, int(batchMax)).next
	}
	if s.ProduceOptions.Progress != nil {
		s.progress = NewProgress(c.Progress, s.total, true)
		defer s.progress.End()
	}
	err = s.run(ctx, next)
	return s.acked.Load(), err
}

// batchBytes asks for the largest batch that the topic takes; one that is not there yet will take what the
// brokers take by default.
func (o Options) batchBytes(ctx context.Context, topic string) (int32, error) {
	adm, err := o.admin(ctx)
	if err != nil {
		return 0, err
	}
	defer adm.Close()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	answers, err := adm.DescribeTopicConfigs(ctx, topic)
	if n, ok := smallest(answers, "max.message.bytes"); err == nil && ok {
		return n, nil
	}
	// Without a list of brokers only the cluster's defaults would be told.
	brokers, err := adm.ListBrokers(ctx)
	if err != nil {
		return batchBytesDefault, nil
	}
	answers, err = adm.DescribeBrokerConfigs(ctx, brokers.NodeIDs()...)
	if n, ok := smallest(answers, "message.max.bytes"); err == nil && ok {
		return n, nil
	}
	return batchBytesDefault, nil
}

// smallest finds a size among settings, within what this client handles.
func smallest(answers kadm.ResourceConfigs, name string) (bytes int32, ok bool) {
	for _, a := range answers {
		for _, c := range a.Configs {
			if c.Key != name {
				continue
			}
			n, err := strconv.ParseInt(c.MaybeValue(), 10, 32)
			if err == nil && n > 0 && (!ok || int32(n) < bytes) {
				bytes, ok = int32(min(n, batchBytesMax)), true
			}
		}
	}
	return bytes, ok
}

// Codecs are the names that -z knows.
var Codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func (c ProduceOptions) clientOptions(batchMax int32) ([]kgo.Opt, error) {
	codec, ok := Codecs[c.Codec]
	if !ok {
		return nil, fmt.Errorf("no codec is called %q (none, gzip, snappy, lz4 and zstd are)", c.Codec)
	}
	opts := []kgo.Opt{
		kgo.DefaultProduceTopic(c.Topic),
		kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(max(batchMax, 1<<10)), // the client takes no less
		kgo.MaxBufferedRecords(bufferedRecordsMax),
		kgo.MaxBufferedBytes(max(bufferedBytesMax, 2*int(batchMax))),
		kgo.ProducerLinger(5 * time.Millisecond),
	}
	if c.Partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	switch c.Acks {
	case "all", "-1":
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, fmt.Errorf("acks %q is not one of 0, 1, all", c.Acks)
	}
	return opts, nil
}

// sender turns pieces of input into records.
type sender struct {
	ProduceOptions
	cl       *kgo.Client
	total    int64 // bytes of input, -1: unknown
	progress *Progress
	acked    atomic.Int64
	failed   atomic.Pointer[error] // of the first record that failed
}

func (s *sender) run(ctx context.Context, next func() ([]byte, error)) error {
	// A record that failed makes all further work useless: stop reading then.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	promise := func(_ *kgo.Record, err error) {
		if err == nil {
			s.acked.Add(1)
			return
		}
		if s.failed.CompareAndSwap(nil, &err) {
			cancel(err)
		}
	}
	defer s.watch(cancel)()
	var inputErr error
	for n := int64(0); s.Count <= 0 || n < s.Count; n++ {
		piece, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				inputErr = err
			}
			break
		}
		if ctx.Err() != nil {
			break
		}
		s.cl.Produce(ctx, s.record(piece), promise)
	}
	flushErr := s.cl.Flush(ctx)
	if why := context.Cause(ctx); why != nil {
		// The client has no error value for this one.
		if s.Partition >= 0 && strings.Contains(why.Error(), "partitioning choice") {
			return fmt.Errorf("%s has no partition %d", s.Topic, s.Partition)
		}
		return topicError(s.Topic, cause(why), "")
	}
	return errors.Join(inputErr, flushErr)
}

// watch gives up when records wait and none was acknowledged for DeliveryMax. (The client's own time-out
// counts from a record's timestamp, which may be any time.) The function it returns ends the watching.
func (s *sender) watch(giveUp func(error)) (end func()) {
	const steps = 20
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(max(s.DeliveryMax/steps, time.Millisecond))
		defer tick.Stop()
		stalled, acked := 0, int64(0)
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			stalled++
			if now := s.acked.Load(); now != acked || s.cl.BufferedProduceRecords() == 0 {
				stalled, acked = 0, now
			}
			if stalled == steps {
				giveUp(fmt.Errorf("no acknowledgement for %v; the broker's log may say why", s.DeliveryMax))
			}
		}
	}()
	return func() { close(done) }
}

func (s *sender) record(piece []byte) *kgo.Record {
	r := &kgo.Record{Partition: max(0, s.Partition), Headers: s.Headers, Key: s.Key, Value: piece}
	if s.KeyDelimiter != "" {
		if key, value, ok := bytes.Cut(piece, []byte(s.KeyDelimiter)); ok {
			r.Key, r.Value = key[:len(key):len(key)], value
		}
	}
	if s.NullEmpty {
		if len(r.Key) == 0 {
			r.Key = nil
		}
		if len(r.Value) == 0 {
			r.Value = nil
		}
	}
	if s.TimestampMs > 0 {
		r.Timestamp = time.UnixMilli(s.TimestampMs)
	}
	return r
}

// fileRecords gives each file as one record.
func (s *sender) fileRecords(limit int) func() ([]byte, error) {
	files := s.Files
	return func() ([]byte, error) {
		if len(files) == 0 {
			return nil, io.EOF
		}
		name := files[0]
		files = files[1:]
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if info.Size() > int64(limit) {
			return nil, fmt.Errorf("%s has %d bytes; at most %d go into one record", name, info.Size(), limit)
		}
		piece, err := os.ReadFile(name)
		s.progress.Add(int64(len(piece)))
		return piece, err
	}
}

// counted reports what is read from in to the progress, and finds out how much there is in all.
func (s *sender) counted(in io.Reader) io.Reader {
	if s.Progress == nil || IsTerminal(in) {
		s.Progress = nil
		return in
	}
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			s.total = info.Size()
		}
	}
	return &countingReader{in, s}
}

type countingReader struct {
	io.Reader
	s *sender
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.s.progress.Add(int64(n))
	return n, err
}
