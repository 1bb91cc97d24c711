package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/inspect"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/memdisk"
)

// testdata/kafka-3.9.1 was written by Apache Kafka 3.9.1 in ZooKeeper mode: clean after an orderly stop, with
// compaction, transactions and DeleteRecords; killed by copying it from under the running broker.

// kafkaDir copies one of them onto an in-memory disk.
func kafkaDir(t *testing.T, name string) *memdisk.FS {
	t.Helper()
	m := memdisk.New(memdisk.Options{})
	root := filepath.Join("testdata/kafka-3.9.1", name)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join("data", strings.TrimPrefix(path, root))
		if e.IsDir() {
			return m.MkdirAll(to)
		}
		p, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := m.Open(to, disk.Create)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteV([][]byte{p}, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func verify(t *testing.T, fs disk.FS) (findings []string, bad int64) {
	t.Helper()
	v := &inspect.Verifier{FS: fs, Report: func(f inspect.Finding) { findings = append(findings, f.String()) }}
	target, err := v.Open("data")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := v.Verify(context.Background(), target); err != nil {
		t.Fatal(err)
	}
	return findings, v.Summary().Bad
}

func TestKafkasDirectories(t *testing.T) {
	for name, want := range map[string][]string{
		"clean": {"__transaction_state-0 [0 13)", "__transaction_state-1 [0 0)", "compact-0 [0 1000)", "plain-0 [0 1000) hw 1000", "txn-0 [0 8) hw 8",
			"web.log-x-0 [300 1000) hw 1000"},
		"killed": {"plain-0 [0 1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := kafkaDir(t, name)
			if findings, bad := verify(t, m); bad > 0 {
				t.Fatalf("verify before: %v", findings)
			}
			s, err := store.Open(context.Background(), store.Config{
				FS: m, Clock: clock.Real{}, Dirs: []string{"data"}, BrokerID: 1, Log: slog.New(slog.DiscardHandler),
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range want {
				checkLog(t, s, w)
			}
			if len(s.All()) != len(want) {
				t.Errorf("logs: %v", s.All())
			}
			appendOne(t, s, store.TP{Topic: "plain", Partition: 0})
			if err := s.Close(true); err != nil {
				t.Fatal(err)
			}
			if findings, bad := verify(t, m); bad > 0 {
				t.Errorf("verify after: %v", findings)
			}
		})
	}
}

// checkLog compares a log with "<name> [<start> <end>)", and, when it says so, the high watermark; and reads all of it.
func checkLog(t *testing.T, s *store.Store, want string) {
	t.Helper()
	name, _, _ := strings.Cut(want, " ")
	tp, ok := store.ParseDir(name)
	l := s.Get(tp)
	if !ok || l == nil {
		t.Errorf("%s is missing", name)
		return
	}
	e := l.Ends()
	got := fmt.Sprintf("%s [%d %d)", name, e.Start, e.Written)
	if strings.Contains(want, "hw") {
		got += fmt.Sprintf(" hw %d", s.HighWatermarkCheckpoint(tp))
	}
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s.TopicID(tp) == (store.UUID{}) {
		t.Errorf("%s has no topic id", name)
	}
	for at := e.Start; at < e.Written; {
		rd, err := l.Read(at, 1<<20, e.Written, true)
		if err != nil {
			t.Errorf("read %s at %d: %v", name, at, err)
			return
		}
		next := rd.NextOffset
		rd.Release()
		if next <= at {
			t.Errorf("read %s at %d: goes on at %d", name, at, next)
			return
		}
		at = next
	}
}

func appendOne(t *testing.T, s *store.Store, tp store.TP) {
	t.Helper()
	bl := batch.NewBuilder()
	bl.Add(1_700_000_100_000, nil, []byte("ours"))
	b, err := bl.Build()
	if err != nil {
		t.Fatal(err)
	}
	s.Get(tp).Enqueue(&commitlog.Append{Batches: []batch.Batch{b}, LeaderEpoch: 1, Done: func(a commitlog.Appended) { err = a.Err }})
	if err != nil {
		t.Errorf("append: %v", err)
	}
}

// TestDumpOfKafkasDirectories: every file of Kafka's can be shown.
func TestDumpOfKafkasDirectories(t *testing.T) {
	for _, name := range []string{"clean", "killed"} {
		m := kafkaDir(t, name)
		files, err := inspect.Find(m, "data")
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		d := inspect.NewDumper(m, &out, inspect.DumpOptions{Payload: true})
		for _, f := range files {
			if err := d.File(context.Background(), f); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wanted := []string{"GET /597 HTTP/1.1", "compresscodec: zstd"}
		if name == "clean" {
			wanted = append(wanted, "endTxnMarker: ABORT coordinatorEpoch: 0", "isControl: true",
				"version: 0 producerId: 5 firstOffset: 2 lastOffset: 3 lastStableOffset: 4")
		}
		for _, w := range wanted {
			if !slices.ContainsFunc(strings.Split(out.String(), "\n"), func(l string) bool { return strings.Contains(l, w) }) {
				t.Errorf("%s: nowhere is %q", name, w)
			}
		}
	}
}
