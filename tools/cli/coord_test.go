package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"platter/tools/proc"
)

// coordinator is `platter coord` in a process.
type coordinator struct {
	cmd  *exec.Cmd
	log  *proc.Buffer
	addr string
}

var listening = regexp.MustCompile(`listening on +(\S+)`)

func startCoord(t *testing.T, dir string, args ...string) *coordinator {
	t.Helper()
	c := &coordinator{cmd: exec.Command(proc.Binary(t), append([]string{"coord"}, args...)...), log: &proc.Buffer{}}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = dir, c.log, c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.cmd.Process.Kill() })
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if m := listening.FindStringSubmatch(c.log.String()); m != nil {
			c.addr = m[1]
			return c
		}
		if time.Since(began) > 60*time.Second {
			t.Fatalf("the coordinator does not start:\n%s", c.log)
		}
	}
}

func (c *coordinator) stop(t *testing.T) {
	t.Helper()
	c.cmd.Process.Signal(syscall.SIGTERM)
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, c.log)
	}
}

func (c *coordinator) word(t *testing.T, word string) string {
	t.Helper()
	nc, err := net.Dial("tcp", c.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.Write([]byte(word))
	b, err := io.ReadAll(nc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCoord starts the coordinator alone from Debian's sample: what it warns of, where it listens, what it
// answers.
func TestCoord(t *testing.T) {
	dir := t.TempDir()
	sample, err := os.ReadFile("../../coord/config/testdata/debian-zoo.cfg")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("%s\n4lw.commands.whitelist=ruok, mntr\nserver.1=a:2888:3888\nadmin.serverPort=0\n", sample)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config", config, "--listen", ":0", "--data", filepath.Join(dir, "data"), "--set", "dataLogDir=" + filepath.Join(dir, "log")}
	c := startCoord(t, dir, args...)
	for _, want := range []string{"initLimit has no effect", "syncLimit has no effect", "server.1 has no effect", "clientPortAddress opens"} {
		if !strings.Contains(c.log.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, c.log)
		}
	}
	if host, _, _ := net.SplitHostPort(c.addr); host != "127.0.0.1" {
		t.Errorf("it listens on %s", c.addr)
	}
	if c.word(t, "ruok") != "imok" || !strings.Contains(c.word(t, "srvr"), "Mode: standalone") ||
		!strings.Contains(c.word(t, "conf"), "not in the whitelist") {
		t.Error("the words are not those that are allowed")
	}
	page := regexp.MustCompile(`http://\S+`).FindString(c.log.String())
	r, err := http.Get(page + "/ruok")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", page, r.Status)
	}
	if _, stderr := command(t, 1, "", "coord", "--listen", ":0", "--data", filepath.Join(dir, "data")); !strings.Contains(stderr, "is in use") {
		t.Errorf("a second one on the same data: %s", stderr)
	}
	c.stop(t)
	startCoord(t, dir, args...).stop(t)
}

// TestCoordRefuses: what cannot be honoured is named, and nothing starts.
func TestCoordRefuses(t *testing.T) {
	dir := t.TempDir()
	for set, want := range map[string]string{
		"secureClientPort=2281": "secureClientPort cannot be honoured", "forceSync=no": "forceSync cannot be honoured",
		"tickTime=soon": "tickTime=soon: not a whole number", "ssl.keyStore.location=x": "there is no TLS",
	} {
		cmd := exec.Command(proc.Binary(t), "coord", "--listen", ":0", "--data", filepath.Join(dir, "data"), "--set", set)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s: exit %d\n%s", set, cmd.ProcessState.ExitCode(), out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("a data directory was made")
	}
	out, _ := command(t, 0, "", "settings", "--coord", "tickTime")
	if !strings.Contains(out, "tickTime = 3000") {
		t.Error(out)
	}
}

// TestWordsInside: the coordinator inside a broker answers what it is told to, and shows its page where it is told.
func TestWordsInside(t *testing.T) {
	b := proc.New(t, proc.Binary(t), t.TempDir())
	delete(b.Props, "zookeeper.connect")
	page := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	b.Props["coordinator.four.letter.words"], b.Props["coordinator.admin.listener"] = "*", page
	b.Start()
	log := waitFor(t, b, "Try next:")
	c := coordinator{addr: regexp.MustCompile(`coordinator +(127\S+)`).FindStringSubmatch(log)[1]}
	if mntr := c.word(t, "mntr"); !strings.Contains(mntr, "zk_server_state\tstandalone\n") {
		t.Error(mntr)
	}
	r, err := http.Get("http://" + page + "/commands/stat")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Error(r.Status)
	}
}
