package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecords: what goes in comes out, in every form that the commands know.
func TestRecords(t *testing.T) {
	b := startBroker(t)
	in := func(stdin string, args ...string) {
		t.Helper()
		command(t, 0, stdin, append([]string{"produce", "-b", b.Addr()}, args...)...)
	}
	out := func(want string, args ...string) {
		t.Helper()
		got, _ := command(t, 0, "", append([]string{"consume", "-b", b.Addr(), "-e"}, args...)...)
		if got != want {
			t.Errorf("consume %s:\n got %q\nwant %q", strings.Join(args, " "), got, want)
		}
	}

	in("one\n\nthree", "-t", "lines")
	out("one\n\nthree\n", "-t", "lines")
	out("0\tone\n1\t\n2\tthree\n", "-t", "lines", "-O")
	out("three\n", "-t", "lines", "-o", "-1")
	out("\n", "-t", "lines", "-o", "1", "-c", "1")
	out("", "-t", "lines", "-o", "end")
	out("one--three-", "-t", "lines", "-D", "-")

	in("k1:v1\nk2:\nplain\n:empty key\n", "-t", "keys", "-p", "0", "-K", ":")
	out("k1|v1\nk2|\n|plain\n|empty key\n", "-t", "keys", "-K", "|")
	out("2/2;2/0;-1/5;0/9;", "-t", "keys", "-f", "%K/%S;")
	in("k3:\n", "-t", "keys", "-p", "0", "-K", ":", "-Z")
	out("k3=NULL\n", "-t", "keys", "-o", "4", "-Z", "-f", `%k=%s\n`)

	in("v\n", "-t", "headers", "-H", "a=1", "-H", "b", "-H", "c=", "-k", "fixed", "--timestamp", "1700000000123")
	out("a=1,b=NULL,c= fixed 1700000000123 headers/0/0\n", "-t", "headers", "-f", `%h %k %T %t/%p/%o\n`)
	out(`{"topic":"headers","partition":0,"offset":0,"tstype":"create","ts":1700000000123,`+
		`"headers":[{"name":"a","value":"1"},{"name":"b","value":null},{"name":"c","value":""}],"key":"fixed","payload":"v"}`+"\n",
		"-t", "headers", "--json")
	out("", "-t", "headers", "-o", "s@1700000000124")
	out("v\n", "-t", "headers", "-o", "s@1700000000123", "-o", "e@1700000000124")
	out("", "-t", "headers", "-o", "e@1700000000123")

	in("a\x00b\x00", "-t", "zeros", "-D", `\0`)
	out("a\x00b\x00", "-t", "zeros", "-D", `\0`)

	dir := t.TempDir()
	var files []string
	for i, content := range []string{"first\nfile\n", "", "third"} {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	in("", append([]string{"-t", "files", "-z", "zstd"}, files...)...)
	out("11|first\nfile\n;0|;5|third;", "-t", "files", "-f", "%S|%s;")
	in("", "-t", "file-lines", "-l", files[0])
	out("first\nfile\n", "-t", "file-lines")
	in("1\n2\n3\n", "-t", "count", "-c", "2")
	out("1\n2\n", "-t", "count")

	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		for _, acks := range []string{"0", "1", "all"} {
			in("x\ny\n", "-t", "codec-"+codec+acks, "-z", codec, "--acks", acks)
		}
		out("x\ny\n", "-t", "codec-"+codec+"all")
	}
}

// TestManyLines: a text of many lines comes back byte by byte, through one partition and, sorted, through
// several.
func TestManyLines(t *testing.T) {
	b := startBroker(t)
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, "%08d %s\n", i, strings.Repeat("x", i%97))
	}
	command(t, 0, text.String(), "produce", "-b", b.Addr(), "-t", "one", "-z", "lz4")
	if got, stderr := command(t, 0, "", "consume", "-b", b.Addr(), "-t", "one", "-e"); got != text.String() || stderr != "" {
		t.Errorf("read %d bytes, want %d, the same ones; on stderr: %q", len(got), text.Len(), stderr)
	}
	command(t, 0, "", "topic", "create", "-b", b.Addr(), "several", "-p", "5")
	command(t, 0, text.String(), "produce", "-b", b.Addr(), "-t", "several")
	got, _ := command(t, 0, "", "consume", "-b", b.Addr(), "-t", "several", "-e", "-f", `%p %s\n`)
	last := map[string]string{}
	lines := 0
	for line := range strings.Lines(got) {
		partition, rest, _ := strings.Cut(line, " ")
		if rest <= last[partition] {
			t.Fatalf("partition %s: %q came after %q", partition, rest[:8], last[partition][:8])
		}
		last[partition] = rest
		lines++
	}
	if lines != 200_000 || len(last) != 5 {
		t.Errorf("%d lines of %d partitions", lines, len(last))
	}
}

// TestTopics: create, list, describe, delete, and their exit codes.
func TestTopics(t *testing.T) {
	b := startBroker(t)
	topic := func(wantExit int, args ...string) (string, string) {
		t.Helper()
		return command(t, wantExit, "", append([]string{"topic"}, append(args, "-b", b.Addr())...)...)
	}
	if out, _ := topic(0, "list"); out != "" {
		t.Errorf("list of nothing: %q", out)
	}
	if out, _ := topic(0, "list", "--json"); out != "[]\n" {
		t.Errorf("list of nothing: %q", out)
	}
	topic(0, "create", "a", "b", "-p", "3", "--config", "retention.ms=1000", "--config", "segment.bytes=1048576")
	if _, stderr := topic(1, "create", "a"); !strings.Contains(stderr, "TOPIC_ALREADY_EXISTS") {
		t.Errorf("stderr: %s", stderr)
	}
	topic(0, "create", "a", "--if-not-exists")
	for _, bad := range [][]string{
		{"create", "bad/name"}, {"create", "c", "-p", "0"}, {"create", "c", "-r", "3"},
		{"create", "c", "--config", "no.such=1"}, {"create", "c", "--config", "cleanup.policy=compact"},
		{"describe", "c"}, {"delete", "c"},
	} {
		if _, stderr := topic(1, bad...); strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %q", bad, stderr)
		}
	}
	topic(0, "create", "c", "--validate-only")
	topic(0, "delete", "c", "--if-exists")
	command(t, 0, "x\ny\n", "produce", "-b", b.Addr(), "-t", "a", "-p", "1")
	out, _ := topic(0, "describe", "a")
	for _, want := range []string{"retention.ms=1000", "segment.bytes=1048576", "PARTITION"} {
		if !strings.Contains(out, want) {
			t.Errorf("describe does not say %q:\n%s", want, out)
		}
	}
	if fields := strings.Fields(strings.Split(out, "\n")[5]); strings.Join(fields, " ") != "1 0 0 0 0 0 2 2" {
		t.Errorf("partition 1: %q\n%s", fields, out)
	}
	if out, _ := topic(0, "list"); !strings.Contains(out, "a ") || !strings.Contains(out, "b ") {
		t.Errorf("list:\n%s", out)
	}
	topic(0, "delete", "a", "b")
	if out, _ := topic(0, "list"); out != "" {
		t.Errorf("list after delete: %q", out)
	}
	command(t, 1, "", "consume", "-b", b.Addr(), "-t", "a", "-e")
}
