package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"platter/engine/batch"
	"platter/engine/segment"
	"platter/io/disk"
)

func TestSimRandomCrashes(t *testing.T) {
	from, to := simSeeds(t)
	for seed := from; seed < to; seed++ {
		s := newSim(seed, plantedNone)
		if err := s.run(4, 40, 0, false); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(s.trace, "\n"))
		}
		if *simSeed >= 0 {
			t.Log(strings.Join(s.trace, "\n"))
		}
	}
}

// Each I/O of a few scenarios is a crash point once, for both kinds of death.
func TestSimCrashAtEveryIO(t *testing.T) {
	scenarios := uint64(4)
	if testing.Short() {
		scenarios = 2
	}
	for seed := range scenarios {
		whole := newSim(1000+seed, plantedNone)
		if err := whole.run(1, 60, 1<<40, false); err != nil {
			t.Fatalf("scenario %d: %v\n%s", seed, err, strings.Join(whole.trace, "\n"))
		}
		for at := int64(1); at <= whole.fs.Count(); at++ {
			for _, powerCut := range []bool{false, true} {
				s := newSim(1000+seed, plantedNone)
				if err := s.run(1, 60, at, powerCut); err != nil {
					t.Fatalf("scenario %d, crash at %d, power cut %v: %v\n%s", seed, at, powerCut, err, strings.Join(s.trace, "\n"))
				}
			}
		}
	}
}

// A checker that never failed has proved nothing.
func TestSimFindsPlantedBugs(t *testing.T) {
	for name, plant := range map[string]planted{
		"torn tail kept": plantedKeepTorn, "acknowledged before the sync": plantedEarlyAck, "sync without data": plantedSyncNoData,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(0); seed < simSeedsDefault; seed++ {
				if err := newSim(seed, plant).run(4, 40, 0, false); err != nil {
					t.Logf("found with seed %d: %v", seed, err)
					return
				}
			}
			t.Fatal("not found")
		})
	}
}

// simCheckIndexes checks the index files as Kafka's dump tool does.
func simCheckIndexes(l *Log) error {
	for _, s := range l.view.Load().segs {
		ends, times := map[int64]int64{}, map[int64]int64{} // by last offset: position, largest timestamp
		if err := simScan(l, s, ends, times); err != nil {
			return err
		}
		lastOffset, lastTime := int64(-1), int64(-1)
		err := simEntries(l, s.Base, segment.IndexName(s.Base), 8, func(p []byte) error {
			offset, pos := s.Base+int64(binary.BigEndian.Uint32(p)), int64(binary.BigEndian.Uint32(p[4:]))
			if at, ok := ends[offset]; !ok || at != pos || offset <= lastOffset {
				return fmt.Errorf("entry offset %d, position %d; the log has the batch at %d (%v)", offset, pos, at, ok)
			}
			lastOffset = offset
			return nil
		})
		if err != nil {
			return err
		}
		err = simEntries(l, s.Base, segment.TimeIndexName(s.Base), 12, func(p []byte) error {
			ts, offset := int64(binary.BigEndian.Uint64(p)), s.Base+int64(binary.BigEndian.Uint32(p[8:]))
			if newest, ok := times[offset]; !ok || newest != ts || ts <= lastTime {
				return fmt.Errorf("entry time %d, offset %d; the batch has %d (%v), the entry before %d", ts, offset, newest, ok, lastTime)
			}
			lastTime = ts
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func simScan(l *Log, s *segment.Segment, ends, times map[int64]int64) error {
	ref, err := s.Acquire()
	if err != nil {
		return err
	}
	defer ref.Release()
	sc := segment.NewScanner(ref.File(), 0, s.SizeBytes(), segment.ScanOptions{CRC: true, Whole: true, NextOffset: s.Base})
	defer sc.Close()
	for sc.Next() {
		b := sc.Batch()
		newest := int64(-1)
		if err := batch.Walk(b, 1<<20, func(r *batch.Record) error {
			newest = max(newest, b.TimestampOf(r))
			return nil
		}); err != nil {
			return err
		}
		ends[b.LastOffset()], times[b.LastOffset()] = sc.Pos(), newest
	}
	return sc.Err()
}

func simEntries(l *Log, base int64, name string, width int64, fn func(p []byte) error) error {
	f, err := l.o.FS.Open(l.pathOf(name), disk.ReadOnly)
	if disk.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	p := make([]byte, size)
	if n, err := f.ReadAt(p, 0); int64(n) != size {
		return err
	}
	if size%width != 0 {
		return fmt.Errorf("%s has %d bytes", name, size)
	}
	for i := int64(0); i < size; i += width {
		if len(bytes.Trim(p[i:], "\x00")) == 0 {
			return nil // a power cut can leave a tail of zeros: unused, as in Kafka
		}
		if err := fn(p[i : i+width]); err != nil {
			return errors.Join(fmt.Errorf("%s, entry %d", name, i/width), err)
		}
	}
	return nil
}
