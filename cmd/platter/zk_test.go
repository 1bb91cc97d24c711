package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"platter/coord/realzk"
	"platter/coord/zkclient"
	"platter/coord/zkserver"
	"platter/io/clock"
	"platter/io/memdisk"
)

// zk runs `platter zk` in a chroot of its own; what varies is blotted out.
type zkRun struct {
	t      *testing.T
	server string
}

func (z zkRun) run(wantExit int, stdin string, args ...string) (stdout, stderr string) {
	z.t.Helper()
	var out, errOut bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	code := run(ctx, append([]string{"zk", "--server", z.server}, args...), strings.NewReader(stdin), &out, &errOut)
	if code != wantExit {
		z.t.Fatalf("platter zk %q: exit %d, want %d\n%s%s", args, code, wantExit, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

func (z zkRun) want(stdout string, args ...string) {
	z.t.Helper()
	if got, _ := z.run(0, "", args...); got != stdout {
		z.t.Errorf("platter zk %q prints\n%s\nwant\n%s", args, got, stdout)
	}
}

// onEachZK runs a test against our coordinator and against Apache's.
func onEachZK(t *testing.T, f func(t *testing.T, z zkRun)) {
	chroot := func(addr string) string {
		path := "/cli-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
		c, err := zkclient.Connect(t.Context(), zkclient.Config{Servers: []string{addr}, Chroot: path})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		return addr + path
	}
	t.Run("ours", func(t *testing.T) {
		s, err := zkserver.Start(t.Context(), zkserver.Config{FS: memdisk.New(memdisk.Options{}), Clock: clock.Real{}, Dir: "/zk"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(t, zkRun{t, chroot(s.Addr().String())})
	})
	t.Run("apache", func(t *testing.T) {
		s, err := realzk.Start(realzk.Options{})
		if err != nil {
			t.Skipf("Apache ZooKeeper: %v", err)
		}
		defer s.Stop()
		f(t, zkRun{t, chroot(s.Addr)})
	})
}

func TestZK(t *testing.T) {
	onEachZK(t, func(t *testing.T, z zkRun) {
		z.want("Created /a\n", "create", "/a", "one")
		z.want("Created /a/b/c\n", "create", "-p", "/a/b/c")
		z.want("Created /a/s-0000000001\n", "create", "-s", "/a/s-", "x")
		z.want("b\ns-0000000001\n", "ls", "/a/")
		z.want("/a\n/a/b\n/a/b/c\n/a/s-0000000001\n", "ls", "-R", "/a")
		z.want("one\n", "get", "/a")
		z.want("null\n", "get", "/a/b/c")
		z.want("", "set", "-v", "0", "/a", "two")
		_, stderr := z.run(1, "", "set", "-v", "0", "/a", "three")
		if !strings.Contains(stderr, "bad version") || strings.Count(stderr, "\n") != 1 {
			t.Error(stderr)
		}
		z.run(0, "from stdin", "set", "/a", "-")
		z.want("from stdin\n", "get", "/a")
		z.want(`{"path":"/a","data":"from stdin"}`+"\n", "get", "--json", "/a")
		z.want(`{"path":"/a","children":["b","s-0000000001"]}`+"\n", "ls", "--json", "/a")
		stat, _ := z.run(0, "", "stat", "/a")
		if !regexp.MustCompile(`(?s)^cZxid = 0x[0-9a-f]+\nctime = .*\ndataVersion = 2\n.*numChildren = 2\n$`).MatchString(stat) {
			t.Error(stat)
		}
		z.want("world:anyone:cdrwa\n", "getAcl", "/a")
		z.want("", "setAcl", "/a", "world:anyone:cdrwa,digest:ann:aGFzaA==:r")
		z.want("world:anyone:cdrwa\ndigest:ann:aGFzaA==:r\n", "getacl", "/a")
		_, stderr = z.run(1, "", "delete", "/a")
		if !strings.Contains(stderr, "has children") {
			t.Error(stderr)
		}
		z.want("", "delete", "/a/s-0000000001")
		z.want("/\n/a\n/a/b\n/a/b/c\n", "ls", "-R", "/")
		z.want("/  version=0\n/a  version=2 acl=[world:anyone:cdrwa digest:ann:aGFzaA==:r]\n    from stdin\n/a/b  version=0\n/a/b/c  version=0\n", "dump")
		dump, _ := z.run(0, "", "dump", "--json", "/a/b")
		var node struct{ Path string }
		if err := json.Unmarshal([]byte(strings.SplitAfter(dump, "\n")[1]), &node); err != nil || node.Path != "/a/b/c" {
			t.Error(dump, err)
		}
		z.want("", "deleteall", "/a")
		z.want("", "ls", "/")
		_, stderr = z.run(1, "", "get", "/a")
		if stderr != "platter: zookeeper: get /a: no node\n" {
			t.Error(stderr)
		}
		if out, _ := z.run(0, "", "4lw", "srvr"); !strings.Contains(out, "Mode: standalone") {
			t.Error(out)
		}
	})
}

// TestZKShell runs lines in one session: what is ephemeral lives until its end.
func TestZKShell(t *testing.T) {
	onEachZK(t, func(t *testing.T, z zkRun) {
		out, stderr := z.run(1, "create -e '/e 1' \"a b\"\n\nls /\nget \"/e 1\"\nget /none\nls --json /\nquit\nls /\n")
		if want := "Created /e 1\ne 1\na b\n" + `{"path":"/","children":["e 1"]}` + "\n"; out != want {
			t.Errorf("it prints\n%s\nwant\n%s", out, want)
		}
		if !strings.Contains(stderr, "get /none: no node") {
			t.Error(stderr)
		}
		z.want("", "ls", "/")
	})
}

// TestZKWatch: events are printed as they come.
func TestZKWatch(t *testing.T) {
	onEachZK(t, func(t *testing.T, z zkRun) {
		z.run(0, "", "create", "/w")
		done := make(chan string)
		go func() {
			var out, errOut bytes.Buffer
			ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
			defer cancel()
			run(ctx, []string{"zk", "--server", z.server, "watch", "-R", "-n", "2", "/w"}, strings.NewReader(""), &out, &errOut)
			done <- out.String() + errOut.String()
		}()
		for i := 0; ; i++ {
			z.run(0, "", "set", "/w", "x") // until the watch is there to see it
			select {
			case got := <-done:
				if got != "NodeDataChanged /w\nNodeDataChanged /w\n" {
					t.Error(got)
				}
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
}

func TestZKUsage(t *testing.T) {
	z := zkRun{t, "127.0.0.1:1"}
	for _, args := range [][]string{
		{"ls"}, {"get", "/a", "b"}, {"set", "/a"}, {"dump", "/a", "b"}, {"nosuch"}, {"--auth", "x", "ls", "/"},
		{"create", "/a", "", "world:anyone"}, {"create", "-c", "-e", "/a"}, {"create", "-t", "0", "/a"}, {"4lw"},
		{"whoami", "x"}, {"getEphemerals", "/a", "/b"}, {"config", "/a"}, {"addWatch", "-m", "X", "/a"}, {"removewatches", "/a"},
		{"setquota", "/a"}, {"setquota", "-n", "0", "/a"}, {"setquota", "-n", "x", "/a"}, {"deleteall", "-b", "0", "/a"},
		{"setAcl", "/a"}, {"setAcl", "/a", "world:anyone:xyz"}, {"ls", "-R", "-s", "/"}, {"--timeout", "0s", "ls", "/"},
	} {
		z.run(2, "", args...)
	}
	_, stderr := z.run(1, "", "--timeout", "50ms", "ls", "/")
	if !strings.Contains(stderr, "no coordinator answers at 127.0.0.1:1") {
		t.Error(stderr)
	}
}

func TestSplitWords(t *testing.T) {
	for in, want := range map[string]string{
		"a b":             "a|b",
		`  a  "b c" `:     "a|b c",
		`'{"x":1}' ""`:    `{"x":1}|`,
		`a\ b "c\"d"`:     `a b|c"d`,
		`a"b`:             "error",
		`a\`:              "error",
		"create /a 'ä ö'": "create|/a|ä ö",
	} {
		words, err := splitWords(in)
		got := strings.Join(words, "|")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %q, want %q (%v)", in, got, want, errors.Unwrap(err))
		}
	}
}
