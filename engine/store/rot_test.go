package store

import (
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/io/disk"
)

// TestRotDoesNotStopTheBroker changes single bytes in the files of a log that was closed cleanly, and starts after
// that, after the death of a process and after a power cut: whatever it finds, the directory must serve,
// and the other log with it.
func TestRotDoesNotStopTheBroker(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		r := newRig(t)
		r.c.serial = true
		r.open()
		r.create("other-0", 1)
		l := r.create("web-0", 1)
		for k := range int64(12) {
			bl := batch.NewBuilder()
			bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = 1+k%2, 0, int32(k/2*3)
			for range 3 {
				bl.Add(1_700_000_000_000+k, []byte("k"), make([]byte, 50))
			}
			b, err := bl.Build()
			if err != nil {
				t.Fatal(err)
			}
			l.Enqueue(&commitlog.Append{Batches: []batch.Batch{b}, Done: func(a commitlog.Appended) { err = a.Err }})
			if err != nil {
				t.Fatal(err)
			}
			if k%4 == 3 {
				if err := l.Roll(); err != nil {
					t.Fatal(err)
				}
				r.s.work.wait()
			}
		}
		how := i % 3
		if how == 0 {
			r.close()
		} else if err := r.s.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		where := rot(t, r, rng)
		switch how {
		case 1:
			r.disk.Kill()
		case 2:
			r.disk.Kill() // all is on the disk, but the machine has restarted
			r.boot++
		}
		if err := r.tryOpen(); err != nil {
			t.Errorf("%s, start %d: %v", where, how, err)
			continue
		}
		if r.s.Get(tp("web-0")) == nil || r.s.Get(tp("other-0")) == nil {
			t.Errorf("%s, start %d: a log is gone: %v", where, how, r.s.Dirs()[0].Offline)
			continue
		}
		if err := appendTo(r.s.Get(tp("web-0")), 1); err != nil {
			t.Errorf("%s, start %d: append: %v", where, how, err)
		}
		if err := r.s.Close(true); err != nil {
			t.Errorf("%s, start %d: close: %v", where, how, err)
		}
	}
}

// rot changes one byte of one of web-0's files.
func rot(t *testing.T, r *rig, rng *rand.Rand) string {
	infos, err := r.disk.ReadDir("data/web-0")
	if err != nil {
		t.Fatal(err)
	}
	for {
		in := infos[rng.IntN(len(infos))]
		if in.SizeBytes == 0 {
			continue
		}
		f, err := r.disk.Open(path.Join("data/web-0", in.Name), disk.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		pos := rng.Int64N(in.SizeBytes)
		var b [1]byte
		if _, err := f.ReadAt(b[:], pos); err != nil {
			t.Fatal(err)
		}
		b[0] ^= byte(1 + rng.IntN(255))
		if _, err := f.WriteV([][]byte{b[:]}, pos); err != nil {
			t.Fatal(err)
		}
		f.Close()
		return fmt.Sprintf("%s at %d", in.Name, pos)
	}
}
