package brokerbench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"platter/bench/rawload"
	"platter/bench/stats"
)

// Depth is how far coalescing really goes in a broker under load: how many record batches one vectored write
// to a log takes.
type Depth struct {
	BatchBytes int        `json:"batch_bytes"`
	InFlight   int        `json:"in_flight"`
	Rows       []DepthRow `json:"rows"`
}

// DepthRow is one load.
type DepthRow struct {
	Producers  int          `json:"producers"`
	Partitions int          `json:"partitions"`
	Writes     int64        `json:"writes"`
	Batches    int64        `json:"batches"`
	P50        int          `json:"p50"` // batches that the median write took at most; a power of two
	P99        int          `json:"p99"`
	Alone      float64      `json:"alone"` // share of the writes that took one batch
	Sample     stats.Sample `json:"sample"`
}

// Mean is the batches of a write.
func (r *DepthRow) Mean() float64 { return float64(r.Batches) / float64(max(r.Writes, 1)) }

// MeasureDepth starts a broker and loads it by 1, 16 and 64 producers at once, on one partition and on 256. A
// batch is the first of o.BatchBytes.
func MeasureDepth(ctx context.Context, o Options) (res *Depth, err error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	res = &Depth{BatchBytes: o.BatchBytes[0], InFlight: o.InFlight}
	for _, partitions := range []int{1, 256} {
		for _, producers := range []int{1, 16, 64} {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			fmt.Fprintf(o.Progress, "\r\x1b[K%d producers, %d partitions", producers, partitions)
			row, err := s.depth(ctx, producers, partitions)
			if err != nil {
				return nil, err
			}
			res.Rows = append(res.Rows, row)
		}
	}
	fmt.Fprint(o.Progress, "\r\x1b[K")
	return res, nil
}

func (s *session) depth(ctx context.Context, producers, partitions int) (row DepthRow, err error) {
	topic := fmt.Sprintf("depth-%d-%d", producers, partitions)
	if _, err := s.admin.CreateTopic(ctx, int32(partitions), 1, nil, topic); err != nil {
		return row, err
	}
	b, _, err := rawload.Shape{BatchBytes: s.o.BatchBytes[0], RecordBytes: min(s.o.RecordBytes, s.o.BatchBytes[0])}.Batch()
	if err != nil {
		return row, err
	}
	frames := make([][]byte, partitions)
	for i := range frames {
		frames[i] = rawload.ProduceFrame(topic, int32(i), s.o.Acks, b)
	}
	count := int(max(1, s.o.RunBytes/int64(len(b))/int64(producers)))
	load := func(count int) error {
		var wg sync.WaitGroup
		failed := make([]error, producers)
		for i := range producers {
			// Each begins at another partition.
			at := i * partitions / producers
			mine := append(slices.Clone(frames[at:]), frames[:at]...)
			wg.Go(func() {
				failed[i] = rawload.Pipeline(s.broker.addr, mine, count, s.o.InFlight, 0, rawload.CheckProduce)
			})
		}
		wg.Wait()
		return errors.Join(failed...)
	}
	if err := load(max(1, partitions/producers)); err != nil { // every file is there
		return row, err
	}
	before, err := s.broker.writeDepths(ctx)
	if err != nil {
		return row, err
	}
	bytes := int64(count) * int64(producers) * int64(len(b))
	row = DepthRow{Producers: producers, Partitions: partitions}
	if row.Sample, err = s.broker.measure(func() (int64, error) { return bytes, load(count) }); err != nil {
		return row, err
	}
	after, err := s.broker.writeDepths(ctx)
	if err != nil {
		return row, err
	}
	after.minus(before)
	row.Writes, row.Batches = after.count, after.sum
	row.P50, row.P99 = after.quantile(0.5), after.quantile(0.99)
	row.Alone = float64(after.atMost[1]) / float64(max(after.count, 1))
	return row, s.deleteTopic(ctx, topic)
}

// depths is platter_log_write_batches as it is scraped.
type depths struct {
	atMost     map[int]int64
	count, sum int64
}

func (c *child) writeDepths(ctx context.Context) (depths, error) {
	body, err := get(ctx, "http://"+c.http+"/metrics")
	if err != nil {
		return depths{}, err
	}
	defer body.Close()
	return parseDepths(body)
}

func parseDepths(r io.Reader) (depths, error) {
	const name = "platter_log_write_batches"
	d := depths{atMost: map[int]int64{}}
	found := false
	for s := bufio.NewScanner(r); s.Scan(); {
		rest, ok := strings.CutPrefix(s.Text(), name)
		if !ok {
			continue
		}
		key, value, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return d, fmt.Errorf("metric %s: %w", name, err)
		}
		most, isBucket := strings.CutPrefix(key, `_bucket{le="`)
		switch {
		case key == "_sum":
			d.sum = int64(n)
		case key == "_count":
			d.count, found = int64(n), true
		case isBucket:
			if bound, err := strconv.Atoi(strings.TrimSuffix(most, `"}`)); err == nil { // else the one without bound
				d.atMost[bound] = int64(n)
			}
		}
	}
	if !found {
		return d, fmt.Errorf("the broker has no metric %s", name)
	}
	return d, nil
}

func (d *depths) minus(e depths) {
	d.count, d.sum = d.count-e.count, d.sum-e.sum
	for most := range d.atMost {
		d.atMost[most] -= e.atMost[most]
	}
}

// quantile is the bound of the bucket that holds it; beyond all buckets it is twice the last bound.
func (d *depths) quantile(q float64) int {
	last := 0
	for most := 1; ; most *= 2 {
		n, ok := d.atMost[most]
		if !ok {
			return 2 * last
		}
		if float64(n) >= q*float64(d.count) {
			return most
		}
		last = most
	}
}
