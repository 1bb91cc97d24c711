package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"platter/engine/batch"
	"platter/engine/checkpoint"
	"platter/engine/epoch"
	"platter/engine/producer"
	"platter/engine/segment"
	"platter/io/disk"
	"platter/io/memdisk"
)

// sample is a data directory with one log of two segments, made by hand.
type sample struct {
	t  testing.TB
	fs *memdisk.FS
}

const sampleLog = "data/web-0"

func put(t testing.TB, fs disk.FS, path string, p []byte) {
	t.Helper()
	if err := fs.MkdirAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(path, disk.Create)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteV([][]byte{p}, 0)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, fs disk.FS, path string) []byte {
	t.Helper()
	p, err := disk.ReadFile(fs, path, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// build makes a batch of n records, one millisecond apart.
func build(t testing.TB, base int64, n int, leader int32, change func(*batch.Builder)) batch.Batch {
	t.Helper()
	bl := batch.NewBuilder()
	bl.BaseOffset, bl.LeaderEpoch = base, leader
	if change != nil {
		change(bl)
	}
	for i := range n {
		o := base + int64(i)
		bl.Add(1_700_000_000_000+o, []byte(fmt.Sprintf("key-%d", o)), []byte(fmt.Sprintf("GET /%d", o)), batch.Header{Key: "host", Value: []byte("a")})
	}
	b, err := bl.Build()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newSample(t testing.TB) *sample {
	s := &sample{t, memdisk.New(memdisk.Options{})}
	idempotent := func(b *batch.Builder) { b.ProducerID, b.ProducerEpoch, b.BaseSequence = 1000, 2, 5 }
	var log, index, times []byte
	add := func(b batch.Batch, indexed bool) {
		if indexed {
			index = binary.BigEndian.AppendUint32(index, uint32(b.LastOffset()))
			index = binary.BigEndian.AppendUint32(index, uint32(len(log)))
			times = binary.BigEndian.AppendUint64(times, uint64(b.MaxTimestamp()))
			times = binary.BigEndian.AppendUint32(times, uint32(b.LastOffset()))
		}
		log = append(log, b...)
	}
	add(build(t, 0, 3, 0, nil), false)
	add(build(t, 3, 2, 0, idempotent), true)
	add(build(t, 5, 4, 2, func(b *batch.Builder) { b.Codec = batch.Zstd }), true)
	s.put(segment.LogName(0), log)
	s.put(segment.IndexName(0), append(index, make([]byte, 64)...)) // preallocated, as Kafka leaves it
	s.put(segment.TimeIndexName(0), times)
	second := build(t, 9, 1, 2, nil)
	s.put(segment.LogName(9), second)
	s.put(segment.IndexName(9), nil)
	s.put(segment.TimeIndexName(9), nil)
	s.put(epoch.FileName, epoch.Format([]epoch.Entry{{Epoch: 0, StartOffset: 0}, {Epoch: 2, StartOffset: 5}}))
	s.put(checkpoint.PartitionFile, checkpoint.FormatPartition(checkpoint.UUID{1, 2, 3}))
	s.put(producer.SnapshotName(9), producer.EncodeSnapshot([]producer.SnapshotEntry{{
		ProducerID: 1000, Epoch: 2, LastSequence: 6, LastOffset: 4, OffsetDelta: 1, TimestampMs: 1_700_000_000_004,
		CoordinatorEpoch: -1, CurrentTxnFirstOffset: -1,
	}}))
	put(t, s.fs, "data/meta.properties", checkpoint.FormatMeta(checkpoint.Meta{BrokerID: 1, ClusterID: "c"}))
	put(t, s.fs, "data/.lock", nil)
	put(t, s.fs, filepath.Join("data", checkpoint.HighWatermarkFile), checkpoint.FormatOffsets(checkpoint.Offsets{{Topic: "web", Partition: 0}: 10}))
	return s
}

func (s *sample) put(name string, p []byte) { put(s.t, s.fs, filepath.Join(sampleLog, name), p) }

// edit changes a file of the log.
func (s *sample) edit(name string, change func([]byte) []byte) {
	s.t.Helper()
	s.put(name, change(get(s.t, s.fs, filepath.Join(sampleLog, name))))
}

func (s *sample) dump(o DumpOptions, paths ...string) (string, error) {
	s.t.Helper()
	var out bytes.Buffer
	d := NewDumper(s.fs, &out, o)
	for _, p := range paths {
		files, err := Find(s.fs, p)
		if err != nil {
			return "", err
		}
		for _, f := range files {
			if err := d.File(context.Background(), f); err != nil {
				return out.String(), err
			}
		}
	}
	err := d.Close()
	return out.String(), err
}

func (s *sample) verify(shallow bool, path string) (string, Summary, error) {
	s.t.Helper()
	var out strings.Builder
	v := &Verifier{FS: s.fs, Shallow: shallow, Report: func(f Finding) { fmt.Fprintln(&out, f) }}
	t, err := v.Open(path)
	if err != nil {
		return "", Summary{}, err
	}
	defer t.Close()
	err = v.Verify(context.Background(), t)
	return out.String(), v.Summary(), err
}
