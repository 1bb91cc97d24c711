package clients

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"platter/tools/proc"
)

// TestKcatRoundTrip: keys, null values, headers and every codec by librdkafka.
func TestKcatRoundTrip(t *testing.T) {
	need(t, "kcat")
	b := broker(t, map[string]string{"num.partitions": "1"})
	b.through(func(t *testing.T, suffix string) { kcatRoundTrips(t, b, suffix) })
}

func kcatRoundTrips(t *testing.T, b *target, suffix string) {
	for _, codec := range codecs {
		t.Run(codec+suffix, func(t *testing.T) {
			topic := "kcat-" + codec + suffix
			var in, want bytes.Buffer
			for i := range 2000 {
				if i%100 == 7 {
					fmt.Fprintf(&in, "key%d:\n", i)
					fmt.Fprintf(&want, "%d|key%d|-1||h=1\n", i, i)
					continue
				}
				v := strings.Repeat(strconv.Itoa(i), 1+i%50)
				fmt.Fprintf(&in, "key%d:%s\n", i, v)
				fmt.Fprintf(&want, "%d|key%d|%d|%s|h=1\n", i, i, len(v), v)
			}
			args := []string{"-P", "-b", b.Addr(), "-t", topic, "-p", "0", "-K:", "-Z", "-H", "h=1", "-z", codec}
			if rolled() { // else what it sends anew may stand there twice
				args = append(args, "-X", "enable.idempotence=true")
			}
			run(t, &in, "kcat", args...)
			got := run(t, nil, "kcat", "-C", "-q", "-b", b.Addr(), "-t", topic, "-p", "0", "-o", "beginning", "-e", "-f", "%o|%k|%S|%s|%h\n")
			if !bytes.Equal(got, want.Bytes()) {
				t.Errorf("read back differs: %d bytes against %d\nfirst lines: %.300s", len(got), want.Len(), got)
			}
			tail := run(t, nil, "kcat", "-C", "-q", "-b", b.Addr(), "-t", topic, "-p", "0", "-o", "-3", "-e", "-f", "%o\n")
			if string(tail) != "1997\n1998\n1999\n" {
				t.Errorf("-o -3 gave %q", tail)
			}
			past := run(t, nil, "kcat", "-C", "-q", "-b", b.Addr(), "-t", topic, "-p", "0", "-o", "s@0", "-c", "1", "-f", "%o\n")
			if string(past) != "0\n" {
				t.Errorf("-o s@0 gave %q", past)
			}
		})
	}
}

// TestKcatMetadata: the list of an empty broker and of one with topics.
func TestKcatMetadata(t *testing.T) {
	need(t, "kcat")
	b := broker(t, nil)
	b.through(func(t *testing.T, suffix string) {
		topic := "listed" + suffix
		run(t, strings.NewReader("x\n"), "kcat", "-P", "-b", b.Addr(), "-t", topic)
		out := string(run(t, nil, "kcat", "-L", "-b", b.Addr()))
		wants := []string{`topic "` + topic + `" with 1 partitions`, " (controller)", "partition 0, leader "}
		if !clustered() {
			wants = append(wants, "broker 0 at "+b.Addr()+" (controller)", "leader 0, replicas: 0, isrs: 0")
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	})
}

const accessLogLines = 1_000_000

// TestAccessLog is the job that such brokers were invented for: a web server's access log of a million
// lines, in by kcat, back by kcat and by platter consume, byte for byte and in order.
func TestAccessLog(t *testing.T) {
	need(t, "kcat", "nginx", "wrk")
	if testing.Short() {
		t.Skip("short run")
	}
	dir := t.TempDir()
	file := accessLog(t, dir, accessLogLines)
	b := broker(t, map[string]string{"num.partitions": "1"})
	run(t, nil, "kcat", "-P", "-b", b.Addr(), "-t", "access", "-p", "0", "-l", file, "-X", "enable.idempotence=true")
	want := digest(t, file)
	for name, args := range map[string][]string{
		"kcat":    {"kcat", "-C", "-q", "-b", b.Addr(), "-t", "access", "-p", "0", "-o", "beginning", "-e"},
		"platter": {proc.Binary(t), "consume", "-b", b.Addr(), "-t", "access", "-p", "0", "-o", "beginning", "-e"},
	} {
		back := filepath.Join(dir, name+".back")
		runTo(t, back, args)
		if got := digest(t, back); got != want {
			t.Errorf("%s: what came back is not what went in (%s, %s)", name, got, want)
		}
	}
}

// accessLog lets nginx write its access log under load until it has the lines.
func accessLog(t *testing.T, dir string, lines int) string {
	t.Helper()
	port := proc.FreePort(t)
	conf := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 256; }
http { access_log %[1]s/access.log combined; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p;
fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
server { listen 127.0.0.1:%[2]d; location / { return 200 "ok\n"; } location /gone { return 404; } } }
`, dir, port)
	lua := `n = 0
request = function()
  n = n + 1
  wrk.headers["User-Agent"] = "agent/" .. (n % 17)
  wrk.headers["Referer"] = "http://127.0.0.1/from/" .. (n % 101)
  if n % 13 == 0 then return wrk.format("GET", "/gone/" .. n) end
  return wrk.format("GET", "/page/" .. n .. "?q=" .. (n * 7919 % 10007))
end
`
	write(t, filepath.Join(dir, "nginx.conf"), conf)
	write(t, filepath.Join(dir, "load.lua"), lua)
	srv := exec.Command("nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			_ = srv.Process.Signal(os.Interrupt)
			_ = srv.Wait()
			stopped = true
		}
	}
	defer stop()
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	waitHTTP(t, url)
	access := filepath.Join(dir, "access.log")
	for range 40 {
		run(t, nil, "wrk", "-t1", "-c16", "-d3s", "-s", filepath.Join(dir, "load.lua"), url)
		if countLines(t, access) >= lines {
			stop()
			t.Logf("%d lines", countLines(t, access))
			return access
		}
	}
	t.Fatalf("the load made only %d lines", countLines(t, access))
	return ""
}

func waitHTTP(t *testing.T, url string) {
	t.Helper()
	for range 6000 {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not answer", url)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func runTo(t *testing.T, path string, args []string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(args[0], args[1:]...)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = f, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%.2000s", args, err, stderr.Bytes())
	}
}

func countLines(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, buf := 0, make([]byte, 1<<20)
	for {
		k, err := f.Read(buf)
		n += bytes.Count(buf[:k], []byte{'\n'})
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func digest(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d bytes %x", n, h.Sum(nil))
}

// TestKcatGroup: kcat as a group's only member, which goes on where the one before it had committed.
func TestKcatGroup(t *testing.T) {
	need(t, "kcat")
	b := broker(t, map[string]string{"num.partitions": "2"})
	b.through(func(t *testing.T, suffix string) { kcatGroup(t, b, "grouped"+suffix, "kcats"+suffix) })
}

func kcatGroup(t *testing.T, b *target, topic, group string) {
	t.Helper()
	lines := func(first, n int) string {
		var s strings.Builder
		for i := first; i < first+n; i++ {
			fmt.Fprintf(&s, "line-%04d\n", i)
		}
		return s.String()
	}
	had := map[string]bool{}
	read := func(n int) string {
		var fresh []string
		for len(fresh) < n {
			args := []string{"-b", b.Addr(), "-G", group, "-q", "-X", "auto.offset.reset=earliest", "-c", strconv.Itoa(n - len(fresh))}
			if rolled() {
				args = append(args, "-X", fmt.Sprint("session.timeout.ms=", shortSession.Milliseconds()))
			}
			out := run(t, nil, "kcat", append(args, topic)...)
			for line := range strings.Lines(string(out)) {
				if !had[line] {
					had[line] = true
					fresh = append(fresh, line)
				} else if !rolled() { // its last commit may not have come through: at least once is what a group promises
					t.Fatalf("%q came again", line)
				}
			}
		}
		slices.Sort(fresh)
		return strings.Join(fresh, "")
	}
	run(t, strings.NewReader(lines(0, 300)), "kcat", "-P", "-b", b.Addr(), "-t", topic)
	if got := read(300); got != lines(0, 300) {
		t.Errorf("first came %d bytes: %.200q", len(got), got)
	}
	run(t, strings.NewReader(lines(300, 100)), "kcat", "-P", "-b", b.Addr(), "-t", topic)
	if got := read(100); got != lines(300, 100) {
		t.Errorf("then came %d bytes: %.200q", len(got), got)
	}
}
