package inspect

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"platter/engine/segment"
)

// TestDump shows the sample with the options and changes that a script names.
func TestDump(t *testing.T) {
	datadriven.RunTest(t, "testdata/dump", func(t *testing.T, d *datadriven.TestData) string {
		s := newSample(t)
		var o DumpOptions
		path := sampleLog
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "records":
				o.Records = true
			case "payload":
				o.Payload = true
			case "headers-only":
				o.HeadersOnly = true
			case "json":
				o.JSON = true
			case "from":
				a.Scan(t, 0, &o.From)
			case "max":
				a.Scan(t, 0, &o.BatchesMax)
			case "path":
				a.Scan(t, 0, &path)
			case "damage":
				var name string
				a.Scan(t, 0, &name)
				damage(s, name)
			default:
				d.Fatalf(t, "unknown option %s", a.Key)
			}
		}
		out, err := s.dump(o, path)
		if err != nil {
			out += "error: " + err.Error() + "\n"
		}
		return out
	})
}

// damage breaks the sample in one way.
func damage(s *sample, name string) {
	flip := func(file string, at int) {
		s.edit(file, func(p []byte) []byte {
			if at < 0 {
				at += len(p)
			}
			p[at] ^= 0x40
			return p
		})
	}
	switch name {
	case "record": // in the second batch
		flip(segment.LogName(0), 300)
	case "length":
		flip(segment.LogName(9), 8)
	case "torn":
		s.edit(segment.LogName(9), func(p []byte) []byte { return p[:len(p)-3] })
	case "clean": // no damage: the directory was closed in order
		put(s.t, s.fs, "data/.kafka_cleanshutdown", nil)
	case "zeros":
		s.edit(segment.LogName(9), func(p []byte) []byte { return append(p, make([]byte, 100_000)...) })
	case "zeros-between": // in a segment that is not the last
		s.edit(segment.LogName(0), func(p []byte) []byte { return append(p, make([]byte, 100)...) })
	case "garbage":
		s.edit(segment.LogName(9), func(p []byte) []byte { return append(p, bytes.Repeat([]byte("x"), 100)...) })
	case "index":
		flip(segment.IndexName(0), 3)
	case "index-position":
		flip(segment.IndexName(0), 7)
	case "index-torn":
		s.edit(segment.TimeIndexName(0), func(p []byte) []byte { return p[:13] })
	case "index-ahead":
		s.edit(segment.IndexName(9), func(p []byte) []byte { return []byte{0, 0, 0, 5, 0, 0, 1, 0} })
	case "timeindex":
		flip(segment.TimeIndexName(0), 7)
	case "snapshot":
		flip("00000000000000000009.snapshot", 20)
	case "snapshot-ahead":
		s.put("00000000000000000099.snapshot", get(s.t, s.fs, sampleLog+"/00000000000000000009.snapshot"))
	case "epochs":
		s.put("leader-epoch-checkpoint", []byte("0\n1\n0 x\n"))
	case "epochs-wrong":
		s.put("leader-epoch-checkpoint", []byte("0\n2\n0 0\n1 5\n"))
	case "epochs-ahead":
		s.put("leader-epoch-checkpoint", []byte("0\n3\n0 0\n2 5\n7 50\n"))
	case "metadata":
		s.put("partition.metadata", []byte("version: 0\n"))
	case "no-index":
		if err := s.fs.Remove(sampleLog + "/" + segment.IndexName(0)); err != nil {
			s.t.Fatal(err)
		}
	case "offsets": // the third batch goes back
		s.edit(segment.LogName(0), func(p []byte) []byte {
			third := bytes.LastIndex(p, build(s.t, 5, 4, 2, nil)[:8])
			p[third+7] = 1
			return p
		})
	case "hole":
		s.put(segment.LogName(9), build(s.t, 11, 1, 2, nil))
	case "foreign": // a batch below the segment's base
		s.put(segment.LogName(9), build(s.t, 7, 1, 2, nil))
	case "checkpoint":
		put(s.t, s.fs, "data/replication-offset-checkpoint", []byte("0\n1\nweb 0 11\n"))
	case "checkpoint-torn":
		put(s.t, s.fs, "data/recovery-point-offset-checkpoint", []byte("0\n2\nweb 0 11\n"))
	case "old":
		s.put(segment.LogName(9), append(oldEntry(9, 0), oldEntry(10, 1)...))
	case "old-crc":
		p := append(oldEntry(9, 0), oldEntry(10, 1)...)
		p[len(p)-1] ^= 1
		s.put(segment.LogName(9), p)
	default:
		s.t.Fatalf("no damage is called %s", name)
	}
}

func TestDumpOfOtherFiles(t *testing.T) {
	s := newSample(t)
	for path, want := range map[string]string{
		"data/.lock": "not the name of a log's file",
		"data/none":  "",
	} {
		if _, err := s.dump(DumpOptions{}, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := s.fs.MkdirAll("empty"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.dump(DumpOptions{}, "empty"); err == nil || !strings.Contains(err.Error(), "no log's files") {
		t.Error(err)
	}
}

func TestDumpTellsOfCorruption(t *testing.T) {
	s := newSample(t)
	damage(s, "record")
	if _, err := s.dump(DumpOptions{}, "data"); !errors.Is(err, ErrBad) {
		t.Error(err)
	}
}
