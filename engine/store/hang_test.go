package store

import (
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"platter/engine/checkpoint"
	"platter/engine/commitlog"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

// hangs is the script of a disk that answers nothing, at /bad.
const hangs = "* /bad : hang\n* /bad/* : hang\n* /bad/*/* : hang\n"

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(60 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// put appends one record and waits for it.
func put(t *testing.T, l *commitlog.Log) {
	t.Helper()
	if err := appendTo(l, 1); err != nil {
		t.Error(err)
	}
}

// TestOneDiskHangs: the other directory's checkpoints, flushes, new logs, deletions and its clean close go on, and questions about
// all directories are answered.
func TestOneDiskHangs(t *testing.T) {
	mem := memdisk.New(memdisk.Options{})
	fs := faultdisk.New(mem, 1, clock.Real{})
	var bad atomic.Bool
	cfg := commitlog.DefaultConfig()
	cfg.FlushMs, cfg.FileDeleteDelayMs = 1, 0
	s, err := Open(t.Context(), Config{
		FS: fs, Clock: clock.Real{}, Dirs: []string{"/bad", "/good"}, BrokerID: 1, OpenFilesMax: 32,
		RetentionCheckMs: 5, FlushCheckMs: 5, CheckpointMs: 5,
		TopicConfig: func(string) commitlog.Config { return cfg },
		Hangs:       func(dir string) bool { return dir == "/bad" && bad.Load() },
		Log:         slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	logs := map[string][]TP{}
	for p := range int32(40) {
		tp := TP{"t", p}
		l, err := s.Create(tp, UUID{1}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		logs[strings.Split(l.Dir(), "/")[1]] = append(logs[strings.Split(l.Dir(), "/")[1]], tp)
		put(t, l)
	}
	if len(logs["bad"]) != 20 || len(logs["good"]) != 20 {
		t.Fatalf("placed: %v", logs)
	}
	if err := fs.Script(hangs); err != nil {
		t.Fatal(err)
	}
	bad.Store(true)
	var waiting sync.WaitGroup
	for _, tp := range logs["bad"][1:] { // all kinds of work for the disk that hangs
		waiting.Go(func() { put(t, s.Get(tp)) })
	}
	waiting.Go(func() { _ = s.Delete(logs["bad"][0]) })

	if infos := s.Dirs(); len(infos) != 2 || infos[1].Space.TotalBytes == 0 || len(infos[1].Logs) != 20 {
		t.Errorf("directories: %+v", infos)
	}
	for _, tp := range logs["good"] {
		put(t, s.Get(tp))
	}
	for _, tp := range logs["good"] {
		eventually(t, "flush.ms", func() bool { e := s.Get(tp).Ends(); return e.Durable == e.Written })
	}
	eventually(t, "the recovery points' checkpoint", func() bool {
		o, err := checkpoint.ReadOffsets(mem, "/good/"+checkpoint.RecoveryPointFile)
		return err == nil && o[checkpoint.Key(logs["good"][3])] == 2
	})
	for p := range int32(10) { // more than there are in /bad: by number alone they would go there
		l, err := s.Create(TP{"new", p}, UUID{2}, cfg)
		if err != nil || !strings.HasPrefix(l.Dir(), "/good/") {
			t.Fatalf("a new log: %v, %v", l, err)
		}
		put(t, l)
	}
	if err := s.Delete(logs["good"][0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted log's files are gone", func() bool {
		infos, err := mem.ReadDir("/good")
		return err == nil && !contains(infos, "-delete")
	})

	closed := make(chan error, 1)
	go func() { closed <- s.Close(true) }()
	eventually(t, "the good directory is closed", func() bool {
		_, err := mem.Stat("/good/" + checkpoint.CleanShutdownFile)
		return err == nil
	})
	select {
	case err := <-closed:
		t.Errorf("closed while a disk hangs: %v", err)
	default:
	}
	if err := fs.Script(""); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func contains(infos []disk.Info, part string) bool {
	for _, in := range infos {
		if strings.Contains(in.Name, part) {
			return true
		}
	}
	return false
}
