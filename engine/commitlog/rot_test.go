package commitlog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"platter/engine/batch"
	"platter/engine/segment"
	"platter/io/disk"
)

// A batch rots below the recovery point, in the sealed or in the active segment. However the log is opened,
// it keeps its end, serves all other batches, and cuts nothing.
func TestRotBelowTheRecoveryPoint(t *testing.T) {
	opens := map[string]func(*Options){
		"clean":     func(o *Options) { o.CleanShutdown = true },
		"same boot": func(o *Options) { o.SameBoot = true },
		"power cut": func(o *Options) {},
	}
	for how, open := range opens {
		for _, victim := range []int64{20, 30, 70, 99} {
			for field, at := range map[string]int64{"offset": 0, "length": 8, "magic": 16, "payload": 70} {
				t.Run(fmt.Sprintf("%s/%d/%s", how, victim, field), func(t *testing.T) {
					r := newRig(t, func(c *Config) { c.SegmentBytes, c.IndexIntervalBytes = 10_000, 1000 })
					for i := range 100 {
						r.mustAppend(records(1, 100+i%7, func(b *batch.Builder) {
							b.ProducerID, b.ProducerEpoch, b.BaseSequence = int64(i%3), 0, int32(i/3)
						}))
					}
					rot(t, r, victim, at)
					if err := r.log.Close(true); err != nil {
						t.Fatal(err)
					}
					r.rp = 100
					size := r.log.SizeBytes()
					r.open(open)
					checkAroundRot(t, r, victim, field != "payload" || len(r.log.BadRanges()) > 0)
					bad, err := r.log.Verify(context.Background(), nil)
					if err != nil || len(bad) != 1 || bad[0].Offset != victim || bad[0].NextOffset != victim+1 {
						t.Fatalf("verify: %+v, %v", bad, err)
					}
					checkAroundRot(t, r, victim, true)
					if e := r.log.Ends(); e.Written != 100 || r.log.SizeBytes() != size {
						t.Fatalf("ends %+v, %d bytes of %d", e, r.log.SizeBytes(), size)
					}
					if _, _, err := r.log.MaxTimestamp(); err != nil && !errors.Is(err, ErrCorrupt) {
						t.Fatal(err)
					}
					r.mustAppend(records(1, 10, nil))
					if p, next := r.read(100, 1000, true); len(p) == 0 || next != 101 {
						t.Fatalf("behind the rot: %d bytes, next %d", len(p), next)
					}
				})
			}
		}
	}
}

// rot overwrites two bytes of the batch at offset, at a position in it.
func rot(t *testing.T, r *rig, offset, at int64) {
	t.Helper()
	rd, err := r.log.Read(offset, 1, r.log.Ends().Written, true)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Release()
	f, err := r.fs.Open(rd.Ranges[0].File.Path(), disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteV([][]byte{{0x55, 0x66}}, rd.Ranges[0].Pos+at); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

func checkAroundRot(t *testing.T, r *rig, victim int64, known bool) {
	t.Helper()
	for o := int64(0); o < 100; o++ {
		rd, err := r.log.Read(o, 1, 100, true)
		if o == victim && known {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("the bad batch at %d: %v, %+v", o, err, rd)
			}
			continue
		}
		if err != nil || rd.NextOffset != o+1 {
			t.Fatalf("read at %d beside the bad batch: next %d, %v", o, rd.NextOffset, err)
		}
		bs, err := batch.Split(nil, bytesOf(t, rd.Ranges))
		rd.Release()
		if o != victim && (err != nil || len(bs) != 1 || batch.CheckCRC(bs[0]) != nil) {
			t.Fatalf("read at %d: %d batches, %v", o, len(bs), err)
		}
	}
}

// Files that a crashed compaction or deletion left, and files without their log.
func TestInterruptedWorkIsFinished(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentBytes = 1000 })
	for range 6 {
		r.mustAppend(records(1, 400, nil))
	}
	if err := r.log.Close(true); err != nil {
		t.Fatal(err)
	}
	put := func(name string, p []byte) {
		f, err := r.fs.Open("/data/t-0/"+name, disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteV([][]byte{p}, 0); err != nil {
			t.Fatal(err)
		}
	}
	first, second := records(1, 50, nil), records(1, 60, nil) // what compaction made of the first two segments
	first.SetBaseOffset(1)
	second.SetBaseOffset(3)
	put(segment.LogName(0)+".swap", append(first, second...))
	put(segment.IndexName(0)+".swap", nil)
	put(segment.LogName(4)+".cleaned", []byte("half"))
	put(segment.LogName(77)+".deleted", []byte("gone"))
	put(segment.TimeIndexName(99), []byte("no log"))
	r.rp = 6
	r.open(func(o *Options) { o.CleanShutdown = true })
	var bases []int64
	for _, b := range r.all() {
		bases = append(bases, b.BaseOffset())
	}
	if fmt.Sprint(bases) != "[1 3 4 5]" {
		t.Fatalf("batches at %v", bases)
	}
	infos, err := r.fs.ReadDir("/data/t-0")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range infos {
		if _, suffix, ok := segment.ParseName(in.Name); ok && suffix != ".log" && suffix != ".index" && suffix != ".timeindex" && suffix != ".snapshot" {
			t.Errorf("%s is still there", in.Name)
		}
	}
}
