// Package cli tries the commands as a user does: the real binary, words on a command line, pipes.
package cli

import (
	"bytes"
	"errors"
	"fmt"
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

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

// command runs platter with arguments and input; it fails the test unless the exit code is as wanted.
func command(t *testing.T, wantExit int, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(proc.Binary(t), args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	err := cmd.Run()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != wantExit {
		t.Fatalf("platter %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, wantExit, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

func startBroker(t *testing.T) *proc.Broker {
	t.Helper()
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Start()
	return b
}

// startAlone starts a broker with the coordinator inside, whatever the others use.
func startAlone(t *testing.T) *proc.Broker {
	t.Helper()
	b := proc.New(t, proc.Binary(t), t.TempDir())
	delete(b.Props, "zookeeper.connect")
	b.Start()
	return b
}

// TestBanner follows what a broker says at its start, word by word.
func TestBanner(t *testing.T) {
	b := startAlone(t)
	log := waitFor(t, b, "Try next:")
	for _, want := range []string{
		"listening on  " + b.Addr(),
		"data in       " + filepath.Join(b.Dir, "data"),
		"I/O backend",
		"coordinator   127.0.0.1:",
		fmt.Sprintf("http://127.0.0.1:%d/metrics", b.Metrics),
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the banner does not say %q", want)
		}
	}
	_, next, _ := strings.Cut(waitFor(t, b, "consume -t hello"), "Try next:\n")
	var out string
	for _, line := range strings.Split(next, "\n")[:3] {
		got, err := exec.Command("sh", "-c", line).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, got)
		}
		out = string(got)
	}
	if out != "hello, world\n" {
		t.Errorf("the last of the three commands printed %q", out)
	}
	b.Stop()
}

// waitFor waits until the broker has printed a text and the rest of its line.
func waitFor(t *testing.T, b *proc.Broker, text string) string {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, rest, ok := strings.Cut(b.Log(), text); ok && strings.Contains(rest, "\n") {
			return b.Log()
		}
	}
	t.Fatalf("the broker never printed %q:\n%s", text, b.Log())
	return ""
}

// TestSignals: the first signal ends a broker cleanly, with exit code 0, and it starts again over its data.
func TestSignals(t *testing.T) {
	b := startBroker(t)
	command(t, 0, "one\n", "produce", "-b", b.Addr(), "-t", "signals")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		b.Signal(sig)
		if err := b.Wait(60 * time.Second); err != nil {
			t.Fatalf("%v: %v\n%s", sig, err, b.LogTail(20))
		}
		b.Start()
	}
	if out, _ := command(t, 0, "", "consume", "-b", b.Addr(), "-t", "signals", "-e"); out != "one\n" {
		t.Errorf("read %q", out)
	}
}

// TestInTheWay: what is in the way of a start is said in one line, and the broker that runs does not feel it.
func TestInTheWay(t *testing.T) {
	b := startAlone(t)
	other := t.TempDir()
	free := fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", proc.FreePort(t))

	_, stderr := command(t, 1, "", "broker", "--listeners", "PLAINTEXT://"+b.Addr(), "--data", other,
		"--set", "metrics.listener=", "--log-level", "error")
	wantOneLine(t, stderr, b.Addr())

	_, stderr = command(t, 1, "", "broker", "--listeners", free, "--data", filepath.Join(b.Dir, "data"),
		"--set", "metrics.listener=", "--log-level", "error")
	wantOneLine(t, stderr, "in use")

	_, stderr = command(t, 1, "", "broker", "--listeners", free, "--data", other,
		"--set", fmt.Sprintf("metrics.listener=127.0.0.1:%d", b.Metrics), "--log-level", "error")
	wantOneLine(t, stderr, "metrics.listener")

	_, stderr = command(t, 1, "", "broker", "--listeners", free, "--data", other, "--zookeeper", "127.0.0.1:1",
		"--set", "metrics.listener=", "--set", "zookeeper.connection.timeout.ms=500", "--log-level", "error")
	wantOneLine(t, stderr, "zookeeper.connect=127.0.0.1:1")

	// None of them left a lock, or harmed the broker that runs.
	second := proc.New(t, proc.Binary(t), other)
	second.Props["log.dirs"] = other
	second.Start()
	second.Stop()
	command(t, 0, "x\n", "produce", "-b", b.Addr(), "-t", "still-there")
}

func wantOneLine(t *testing.T, stderr, want string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "platter: ") || !strings.Contains(stderr, want) {
		t.Errorf("want one line with %q, got:\n%s", want, stderr)
	}
}

// TestStockProperties: the server.properties that Kafka 3.9 ships starts a broker, where there is a ZooKeeper. The
// ZooKeeper is another broker's coordinator, and the file's port and directory are overridden by flags.
func TestStockProperties(t *testing.T) {
	b := startAlone(t)
	coordinator := regexp.MustCompile(`coordinator +(\S+) `).FindStringSubmatch(waitFor(t, b, "Try next:"))[1]
	second := proc.New(t, proc.Binary(t), t.TempDir())
	stock, err := os.ReadFile("../../coord/config/testdata/stock-zookeeper.properties")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(stock)) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		if _, set := second.Props[name]; ok && !set && !strings.HasPrefix(line, "#") {
			second.Props[name] = value
		}
	}
	second.Props["zookeeper.connect"] = coordinator + "/stock"
	second.Start()
	command(t, 0, "a\nb\n", "produce", "-b", second.Addr(), "-t", "stock")
	if out, _ := command(t, 0, "", "consume", "-b", second.Addr(), "-t", "stock", "-e"); out != "a\nb\n" {
		t.Errorf("read %q", out)
	}
	if log := second.Log(); !strings.Contains(log, "num.io.threads has no effect") {
		t.Errorf("no warning names num.io.threads:\n%s", log)
	}
	second.Stop()
}

// TestOldNames: the settings from before listeners and log.dirs still place a broker.
func TestOldNames(t *testing.T) {
	b := proc.New(t, proc.Binary(t), t.TempDir())
	delete(b.Props, "listeners")
	delete(b.Props, "log.dirs")
	b.Props["port"] = fmt.Sprint(b.Port)
	b.Props["host.name"] = "127.0.0.1"
	b.Props["log.dir"] = filepath.Join(b.Dir, "old")
	b.Start()
	command(t, 0, "x\n", "produce", "-b", b.Addr(), "-t", "old")
	b.Stop()
	if _, err := os.Stat(filepath.Join(b.Dir, "old", "old-0")); err != nil {
		t.Error(err)
	}
}

// TestStopWhileStarting: a broker that hangs in its start, here on a ZooKeeper that is not there, ends at the first
// signal; nothing is left behind.
func TestStopWhileStarting(t *testing.T) {
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["zookeeper.connect"] = "127.0.0.1:1"
	b.Props["zookeeper.connection.timeout.ms"] = "60000"
	b.Launch()
	waitFor(t, b, "connecting to ZooKeeper")
	b.Signal(syscall.SIGTERM)
	if err := b.Wait(60 * time.Second); err != nil {
		t.Fatalf("%v\n%s", err, b.LogTail(10))
	}
	delete(b.Props, "zookeeper.connect")
	b.Start()
	b.Stop()
}
