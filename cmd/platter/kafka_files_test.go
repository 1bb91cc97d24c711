package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const kafkaFiles = "testdata/kafka-4.4.0"

var deleteHorizon = regexp.MustCompile(` deleteHorizonMs: \S+`)

// TestDumpOfKafkasFiles: what Kafka wrote, shown line for line as Kafka's own tool shows it.
func TestDumpOfKafkasFiles(t *testing.T) {
	dumps, err := filepath.Glob(kafkaFiles + "/*.dump")
	if err != nil || len(dumps) != 6 {
		t.Fatalf("%d dumps by Kafka, want 6 (%v)", len(dumps), err)
	}
	for _, d := range dumps {
		want, err := os.ReadFile(d)
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		file := filepath.Join(strings.TrimSuffix(d, ".dump"), "00000000000000000000.log")
		if code := run(context.Background(), []string{"log", "dump", file}, nil, &out, &errs); code != exitOK {
			t.Errorf("%s: exit code %d: %s", file, code, errs.String())
		}
		got, theirs := batchLines(out.String()), batchLines(string(want))
		if len(theirs) < 20 {
			t.Fatalf("%s: only %d lines about batches", d, len(theirs))
		}
		for i := range theirs {
			if i >= len(got) || got[i] != theirs[i] {
				t.Errorf("%s: line %d of %d (we print %d):\nKafka %s\nwe    %s", d, i, len(theirs), len(got), theirs[i], got[min(i, len(got)-1)])
				break
			}
		}
		if len(got) > len(theirs) {
			t.Errorf("%s: %d lines more than Kafka prints", d, len(got)-len(theirs))
		}
	}
}

func batchLines(dump string) []string {
	var out []string
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, "baseOffset:") {
			out = append(out, strings.TrimSpace(deleteHorizon.ReplaceAllString(line, "")))
		}
	}
	return out
}

// TestVerifyOfKafkasFiles: nothing is wrong with them, and one flipped bit is found.
func TestVerifyOfKafkasFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kafkaFiles)); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"log", "verify", dir}, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, out.String(), errs.String())
	}
	file := filepath.Join(dir, "fix-lz4-0", "00000000000000000000.log")
	p, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p[len(p)/2] ^= 4
	if err := os.WriteFile(file, p, 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	code := run(context.Background(), []string{"log", "verify", dir}, nil, &out, &errs)
	if code != exitFailed || !strings.Contains(out.String()+errs.String(), "fix-lz4-0") {
		t.Errorf("a flipped bit: exit code %d: %s%s", code, out.String(), errs.String())
	}
}
