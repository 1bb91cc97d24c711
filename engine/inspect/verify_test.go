package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"

	"platter/engine/segment"
	"platter/io/disk"
)

// TestVerify verifies the sample after each damage that a script names.
func TestVerify(t *testing.T) {
	datadriven.RunTest(t, "testdata/verify", func(t *testing.T, d *datadriven.TestData) string {
		s := newSample(t)
		shallow, path := false, "data"
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "shallow":
				shallow = true
			case "path":
				a.Scan(t, 0, &path)
			case "damage":
				for _, v := range a.Vals {
					damage(s, v)
				}
			default:
				d.Fatalf(t, "unknown option %s", a.Key)
			}
		}
		out, sum, err := s.verify(shallow, path)
		return fmt.Sprintf("%s%d bad, %d notes; %d logs, %d segments, %d batches, %d records; error %v\n",
			out, sum.Bad, sum.Notes, sum.Logs, sum.Segments, sum.Batches, sum.Records, err)
	})
}

func TestVerifyWantsTheDirectoryForItself(t *testing.T) {
	s := newSample(t)
	lock, err := s.fs.Lock("data/.lock")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"data", sampleLog} {
		if _, _, err := s.verify(false, path); !errors.Is(err, disk.ErrLocked) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.verify(false, "data"); err != nil {
		t.Error(err)
	}
	if lock, err = s.fs.Lock("data/.lock"); err != nil {
		t.Fatalf("the lock was not given back: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

func TestVerifyOfAnythingElse(t *testing.T) {
	s := newSample(t)
	if err := s.fs.MkdirAll("empty/x"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.verify(false, "empty"); !errors.Is(err, ErrNoLogs) {
		t.Error(err)
	}
	if _, _, err := s.verify(false, "none"); !disk.IsNotExist(err) {
		t.Error(err)
	}
}

// TestEveryFlippedBitIsFound flips single bits all over the .log files: where they are covered by a CRC or fix the
// place of a batch, verify must notice.
func TestEveryFlippedBitIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	log := get(t, newSample(t).fs, filepath.Join(sampleLog, segment.LogName(0)))
	for range 300 {
		bit := rng.IntN(len(log) * 8)
		s := newSample(t)
		s.edit(segment.LogName(0), func(p []byte) []byte {
			p[bit/8] ^= 1 << (bit % 8)
			return p
		})
		out, sum, err := s.verify(true, sampleLog)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Bad+sum.Notes == 0 {
			t.Errorf("bit %d of byte %d: nothing was found: %s", bit%8, bit/8, out)
		}
	}
}

// FuzzFiles gives all readers arbitrary bytes under every name.
func FuzzFiles(f *testing.F) {
	s := newSample(f)
	for _, name := range []string{segment.LogName(0), segment.IndexName(0), segment.TimeIndexName(0), "00000000000000000009.snapshot"} {
		f.Add(get(f, s.fs, filepath.Join(sampleLog, name)))
	}
	f.Add(append(oldEntry(0, 0), oldEntry(1, 1)...))
	f.Fuzz(func(t *testing.T, p []byte) {
		s := newSample(t)
		for _, name := range []string{segment.LogName(9), segment.IndexName(0), segment.TimeIndexName(0),
			segment.TxnIndexName(0), "00000000000000000009.snapshot", "leader-epoch-checkpoint"} {
			s.put(name, p)
		}
		if _, _, err := s.verify(false, "data"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.dump(DumpOptions{Payload: true}, "data"); err != nil && !errors.Is(err, ErrBad) {
			t.Fatal(err)
		}
	})
}

// oldEntry is an entry of an old message set with the key "k" and the value "v".
func oldEntry(offset int64, magic byte) []byte {
	be := binary.BigEndian
	body := []byte{magic, 0}
	if magic == 1 {
		body = be.AppendUint64(body, uint64(1_400_000_000_000+offset))
	}
	body = append(be.AppendUint32(body, 1), 'k')
	body = append(be.AppendUint32(body, 1), 'v')
	p := be.AppendUint64(nil, uint64(offset))
	p = be.AppendUint32(p, uint32(len(body)+4))
	p = be.AppendUint32(p, crc32.ChecksumIEEE(body))
	return append(p, body...)
}
