package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"platter/io/portable"
)

const kafkaLog = "../../engine/store/testdata/kafka-3.9.1/clean"

// platter runs the program and gives its exit code and output.
func platter(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestLogDump(t *testing.T) {
	segment := filepath.Join(kafkaLog, "txn-0", "00000000000000000000.log")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{segment}, exitOK, "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: 0"},
		{[]string{segment, "--print-data-log"}, exitOK, "payload: t0"},
		{[]string{"--files", segment, "--deep-iteration"}, exitOK, "| offset: 0 CreateTime"},
		{[]string{segment, "--json", "-n", "1"}, exitOK, `"base_offset":0,`},
		{[]string{kafkaLog, "--headers-only"}, exitOK, "epoch: 0 startOffset: 0"},
		{nil, exitUsage, "name at least one file"},
		{[]string{segment, "-r", "--headers-only"}, exitUsage, "reads no records"},
		{[]string{filepath.Join(kafkaLog, "none")}, exitFailed, "no such file"},
	} {
		code, out, errs := platter(t, append([]string{"log", "dump"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("log dump %v: exit code %d, want %d with %q\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
}

func TestLogVerify(t *testing.T) {
	code, out, errs := platter(t, "log", "verify", kafkaLog)
	if code != exitOK || !strings.Contains(out, "6 logs, ") || !strings.Contains(out, ": 0 bad, ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if code, out, errs = platter(t, "log", "verify", "-q", kafkaLog); code != exitOK || out+errs != "" {
		t.Errorf("quiet: exit code %d\n%s%s", code, out, errs)
	}

	dir := filepath.Join(t.TempDir(), "plain-0")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(kafkaLog, "plain-0"))); err != nil {
		t.Fatal(err)
	}
	flipByte(t, filepath.Join(dir, "00000000000000000000.log"), 200)
	if code, out, errs = platter(t, "log", "verify", dir); code != exitFailed || !strings.Contains(out, "BAD "+dir) || !strings.Contains(out, "CRC32C") {
		t.Errorf("a flipped byte: exit code %d\n%s%s", code, out, errs)
	}
	if code, out, errs = platter(t, "log", "dump", dir); code != exitFailed || !strings.Contains(out, "isvalid: false") {
		t.Errorf("dump of a flipped byte: exit code %d\n%s", code, errs)
	}
	if code, _, errs = platter(t, "log", "verify"); code != exitUsage {
		t.Errorf("without a directory: exit code %d\n%s", code, errs)
	}
}

func TestLogVerifyRefusesADirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kafkaLog)); err != nil {
		t.Fatal(err)
	}
	lock, err := portable.New().Lock(filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func(c io.Closer) { c.Close() }(lock)
	code, out, errs := platter(t, "log", "verify", dir)
	if code != exitFailed || !strings.Contains(errs, "stop the broker first") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

func flipByte(t *testing.T, path string, at int) {
	t.Helper()
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p[at] ^= 1
	if err := os.WriteFile(path, p, 0o644); err != nil {
		t.Fatal(err)
	}
}
