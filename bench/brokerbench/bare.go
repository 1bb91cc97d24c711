package brokerbench

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"platter/bench/rawload"
	"platter/bench/stats"
)

// Ceiling runs the bare programs alone: the sink with each batch size, the source with each, and calls
// report with what was run, the batch size and the samples.
func Ceiling(ctx context.Context, o Options, report func(what string, batchBytes int, ss []stats.Sample) error) (err error) {
	dir, err := tempDir(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "source")
	if err := fill(file, o.RunBytes); err != nil {
		return err
	}
	sink, err := startBare(o.Exe, "--sink", dir)
	if err != nil {
		return err
	}
	defer sink.stop()
	source, err := startBare(o.Exe, "--source", file)
	if err != nil {
		return err
	}
	defer source.stop()
	for _, size := range o.BatchBytes {
		b, _, err := rawload.Shape{BatchBytes: size, RecordBytes: o.RecordBytes}.Batch()
		if err != nil {
			return err
		}
		frames := [][]byte{rawload.ProduceFrame("bench", 0, o.Acks, b)}
		count := int(max(1, o.RunBytes/int64(len(b))))
		in, err := repeat(ctx, sink, o.Runs, func() (int64, error) {
			return int64(count) * int64(len(b)), rawload.Pipeline(sink.addr, frames, count, o.InFlight, 8, nil)
		})
		if err != nil {
			return err
		}
		if err := report("socket → CRC32C → file", size, in); err != nil {
			return err
		}
		out, err := repeat(ctx, source, o.Runs, func() (int64, error) {
			return rawload.FetchBare(source.addr, int32(size), o.RunBytes, o.RunBytes)
		})
		if err != nil {
			return err
		}
		if err := report("file → sendfile → socket", size, out); err != nil {
			return err
		}
	}
	return nil
}

func repeat(ctx context.Context, c *child, runs int, work func() (int64, error)) ([]stats.Sample, error) {
	var out []stats.Sample
	for range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := c.measure(work)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// fill writes n bytes, for the source to send from the page cache.
func fill(path string, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for i := range buf {
		buf[i] = byte(i * 131)
	}
	for n > 0 && err == nil {
		var k int
		k, err = f.Write(buf[:min(n, int64(len(buf)))])
		n -= int64(k)
	}
	return errors.Join(err, f.Close())
}
