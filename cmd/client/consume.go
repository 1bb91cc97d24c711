package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ConsumeOptions say what to read.
type ConsumeOptions struct {
	Topic      string
	Partitions []int32 // empty: all
	Start      Start
	UntilMs    int64 // above 0: stop before the first record at or after it
	Count      int64 // above 0: stop after so many records
	ExitAtEnd  bool  // stop at the end as it is when reading begins
	Unbuffered bool  // write each record at once
	Committed  bool  // only records of committed transactions
	Format     Formatter
	Progress   io.Writer // nil: none
}

// writeBytes is how much output is gathered before it is written.
const writeBytes = 256 << 10

// Consume reads without a group and writes each record to w, each partition's in order. It returns when all
// was read that was asked for, or when ctx ends.
func (o Options) Consume(ctx context.Context, w io.Writer, c ConsumeOptions) error {
	todo, err := o.spans(ctx, c)
	if err != nil {
		return err
	}
	r := &reader{ConsumeOptions: c, w: w, todo: todo, bounded: c.ExitAtEnd || c.UntilMs > 0}
	offsets := map[int32]kgo.Offset{}
	total := int64(0)
	for p, s := range todo {
		if r.bounded && s.from >= s.to {
			delete(todo, p)
			continue
		}
		offsets[p] = kgo.NewOffset().At(s.from)
		total += s.to - s.from
	}
	if len(todo) == 0 {
		return nil
	}
	opts := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: offsets}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxPartitionBytes(8 << 20),
		// Control records tell that a partition's end was reached even when nothing else does.
		kgo.KeepControlRecords(),
		kgo.KeepRetryableFetchErrors(), // those that last are an end, too
	}
	if c.Committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	cl, err := o.Connect(ctx, opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	if c.Progress != nil {
		switch {
		case c.Count > 0 && (!r.bounded || c.Count < total):
			total = c.Count
		case !r.bounded:
			total = -1
		}
		r.progress = NewProgress(c.Progress, total, false)
		defer r.progress.End()
	}
	return r.run(ctx, o, cl)
}

func (o Options) spans(ctx context.Context, c ConsumeOptions) (map[int32]span, error) {
	adm, err := o.admin(ctx)
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := topicExists(ctx, adm, c.Topic); err != nil {
		return nil, err
	}
	return spans(ctx, adm, c.Topic, c.Partitions, c.Start, c.UntilMs)
}

// topicExists gives the error of a topic that is not there a name.
func topicExists(ctx context.Context, adm *kadm.Client, topic string) error {
	details, err := adm.ListTopicsWithInternal(ctx, topic)
	if err != nil {
		return cause(err)
	}
	if d := details[topic]; d.Err != nil {
		return topicError(topic, d.Err, "")
	}
	return nil
}

// reader writes what comes in until nothing is left to do.
type reader struct {
	ConsumeOptions
	w        io.Writer
	todo     map[int32]span // partitions that are not at their end yet
	bounded  bool
	written  int64
	buf      []byte
	progress *Progress

	failing      error // of the fetches since failingSince, which are tried again; nil: they go well
	failingSince time.Time
}

// errDone ends the reading without being an error.
var errDone = errors.New("done")

func (r *reader) run(ctx context.Context, o Options, cl *kgo.Client) error {
	for {
		poll, cancel := ctx, context.CancelFunc(func() {})
		if r.bounded {
			// Whoever waits for an end must hear of a broker that is gone.
			poll, cancel = context.WithTimeout(ctx, o.Timeout)
		}
		fetches := cl.PollFetches(poll)
		timedOut := poll.Err() != nil
		cancel()
		err := r.take(fetches)
		if flushErr := r.flush(); err == nil || errors.Is(err, errDone) {
			if flushErr != nil {
				return flushErr
			}
		}
		switch {
		case errors.Is(err, errDone) || ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case r.bounded && r.failing != nil && time.Since(r.failingSince) > o.Timeout:
			return r.failing
		case timedOut:
			ping, cancel := context.WithTimeout(ctx, o.Timeout)
			err := cl.Ping(ping)
			cancel()
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("the broker is gone: %w", cause(err))
			}
		}
	}
}

// take writes the records of one poll.
func (r *reader) take(fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
		case errors.Is(e.Err, kerr.CorruptMessage): // asking again would not mend it
			return fmt.Errorf("%s [%d]: the records that come next are corrupt on the broker's disk (%s)",
				e.Topic, e.Partition, kerr.CorruptMessage.Message)
		case kerr.IsRetriable(e.Err), kgo.IsRetryableBrokerErr(e.Err):
			if r.failing == nil {
				r.failingSince = time.Now()
			}
			r.failing = topicError(fmt.Sprintf("%s [%d]", e.Topic, e.Partition), e.Err, "")
		default:
			return topicError(fmt.Sprintf("%s [%d]", e.Topic, e.Partition), e.Err, "")
		}
	}
	var err error
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if err == nil {
			err = r.partition(p.Partition, p.Records)
		}
	})
	return err
}

func (r *reader) partition(partition int32, records []*kgo.Record) error {
	s, open := r.todo[partition]
	if !open {
		return nil
	}
	for _, rec := range records {
		past := r.bounded && rec.Offset >= s.to
		if !past && !rec.Attrs.IsControl() {
			if err := r.write(rec); err != nil {
				return err
			}
		}
		if past || (r.bounded && rec.Offset == s.to-1) {
			delete(r.todo, partition)
			if len(r.todo) == 0 {
				return errDone
			}
			return nil
		}
	}
	return nil
}

func (r *reader) write(rec *kgo.Record) error {
	r.buf = r.Format(r.buf, rec)
	r.written++
	r.failing = nil
	r.progress.Add(1)
	if r.Unbuffered || len(r.buf) >= writeBytes {
		if err := r.flush(); err != nil {
			return err
		}
	}
	if r.Count > 0 && r.written == r.Count {
		return errDone
	}
	return nil
}

func (r *reader) flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	_, err := r.w.Write(r.buf)
	r.buf = r.buf[:0]
	return err
}
