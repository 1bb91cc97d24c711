// Package proc runs Platter as its users do: the real binary, as a process, with a server.properties,
// on loopback. Tests start it, kill it at bad moments, and start it again over the same data.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var build struct {
	sync.Mutex
	paths map[string]string
}

// Binary builds platter once a test process, with the given build tags, and returns its path.
func Binary(t testing.TB, tags ...string) string {
	t.Helper()
	build.Lock()
	defer build.Unlock()
	key := strings.Join(tagsOrUsual(tags), ",")
	if p, ok := build.paths[key]; ok {
		return p
	}
	dir, err := os.MkdirTemp("", "platter-bin-")
	if err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(dir, "platter")
	cmd := exec.Command("go", "build", "-tags", key, "-o", p, "platter/cmd/platter")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if build.paths == nil {
		build.paths = map[string]string{}
	}
	build.paths[key] = p
	return p
}

// Cleanup removes what Binary built, and ends the coordinator that New may have started; call it at the end of
// TestMain.
func Cleanup() {
	stopShared()
	build.Lock()
	defer build.Unlock()
	for _, p := range build.paths {
		_ = os.RemoveAll(filepath.Dir(p))
	}
	build.paths = nil
}

// Ports that tests choose lie below those that systems give to connections on their own (from 32768 on Linux, from
// 49152 elsewhere): a broker's port must not be taken while the broker is down.
const (
	portMin = 12_000
	portMax = 32_000
)

// ports holds the UDP port of each TCP port's number, until this process ends: other test processes leave alone what
// they cannot hold.
var ports struct {
	sync.Mutex
	held []net.PacketConn
}

// FreePort finds a TCP port on loopback that nobody listens on now. Nobody else is given it while this process lives,
// neither in this process nor in others.
func FreePort(t testing.TB) int {
	t.Helper()
	p, err := choosePort()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func choosePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", portMin+rand.IntN(portMax-portMin))
		hold, err := net.ListenPacket("udp4", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp4", addr)
		if err != nil {
			hold.Close()
			continue
		}
		l.Close()
		ports.held = append(ports.held, hold)
		return hold.LocalAddr().(*net.UDPAddr).Port, nil
	}
	return 0, errors.New("no port is free")
}

// Broker is one broker process over one data directory. Its methods are for one goroutine.
type Broker struct {
	t       testing.TB
	bin     string
	Dir     string            // working directory; data is in Dir/data
	Host    string            // the address it listens on
	Port    int               // Kafka's protocol
	Metrics int               // HTTP
	Props   map[string]string // server.properties; change it between Stop and Start
	Env     []string          // added to the process's environment
	Wrap    []string          // put in front of the command (prlimit, strace)
	cmd     *exec.Cmd
	done    chan error
	log     Buffer
}

// New prepares a broker with fresh ports over dir; Start starts it. The process is killed when the test ends.
func New(t testing.TB, bin, dir string) *Broker {
	b := &Broker{t: t, bin: bin, Dir: dir, Host: "127.0.0.1", Port: FreePort(t), Metrics: FreePort(t)}
	b.Props = map[string]string{
		"broker.id":        "0",
		"listeners":        fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", b.Port),
		"log.dirs":         filepath.Join(dir, "data"),
		"metrics.listener": fmt.Sprintf("127.0.0.1:%d", b.Metrics),
	}
	setBackend(b.Props)
	if kind := CoordinatorKind(t); kind != Embedded {
		b.Props["zookeeper.connect"] = sharedConnect(t, kind, bin, dir)
	}
	t.Cleanup(func() {
		b.Kill()
		if t.Failed() {
			t.Logf("broker log (tail):\n%s", b.LogTail(60))
		}
	})
	return b
}

// Addr is the bootstrap address.
func (b *Broker) Addr() string { return fmt.Sprintf("%s:%d", b.Host, b.Port) }

// MoveTo makes the broker listen at another address; wrap is put in front of its command. Before Launch.
func (b *Broker) MoveTo(host string, wrap ...string) {
	b.Host, b.Wrap = host, append(slices.Clone(wrap), b.Wrap...)
	b.Props["listeners"] = "PLAINTEXT://" + b.Addr()
	b.Props["metrics.listener"] = fmt.Sprintf("%s:%d", host, b.Metrics)
}

// Launch starts the process and returns at once.
func (b *Broker) Launch() {
	b.t.Helper()
	var lines []string
	for k, v := range b.Props {
		lines = append(lines, k+"="+v)
	}
	slices.Sort(lines)
	file := filepath.Join(b.Dir, "server.properties")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	args := append(slices.Clone(b.Wrap), b.bin, "broker", "--config", file)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = b.Dir
	cmd.Env = append(os.Environ(), b.Env...)
	cmd.Stdout, cmd.Stderr = &b.log, &b.log
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.cmd, b.done = cmd, make(chan error, 1)
	go func(done chan error) { done <- cmd.Wait() }(b.done)
}

// Start launches the process and waits until it is ready to serve.
func (b *Broker) Start() {
	b.t.Helper()
	b.Launch()
	if err := b.WaitReady(60 * time.Second); err != nil {
		b.t.Fatalf("broker did not become ready: %v\n%s", err, b.LogTail(60))
	}
}

// WaitReady polls the readiness endpoint.
func (b *Broker) WaitReady(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	url := fmt.Sprintf("http://%s:%d/ready", b.Host, b.Metrics)
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-b.done:
			b.done <- err
			return fmt.Errorf("process ended: %v", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Pid is the process id, 0 when it does not run.
func (b *Broker) Pid() int {
	if b.cmd == nil {
		return 0
	}
	return b.cmd.Process.Pid
}

// Kill sends SIGKILL and waits for the end. A broker that does not run is no error.
func (b *Broker) Kill() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill()
	<-b.done
	b.cmd = nil
}

// Signal sends sig.
func (b *Broker) Signal(sig syscall.Signal) {
	if err := b.cmd.Process.Signal(sig); err != nil {
		b.t.Errorf("signal %v: %v", sig, err)
	}
}

// Stop sends SIGTERM and waits for a clean end.
func (b *Broker) Stop() {
	b.t.Helper()
	b.Signal(syscall.SIGTERM)
	if err := b.Wait(60 * time.Second); err != nil {
		b.t.Fatalf("broker did not stop cleanly: %v\n%s", err, b.LogTail(40))
	}
}

// Wait waits for the process to end by itself and returns its exit error.
func (b *Broker) Wait(limit time.Duration) error {
	select {
	case err := <-b.done:
		b.cmd = nil
		return err
	case <-time.After(limit):
		return errors.New("still running")
	}
}

// RSSBytes is the process's resident memory.
func (b *Broker) RSSBytes() int64 {
	b.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Pid()))
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	b.t.Fatal("no VmRSS in /proc status")
	return 0
}

// Log is everything that the process has printed so far, over all its starts.
func (b *Broker) Log() string { return b.log.String() }

// LogTail is the last n lines of Log.
func (b *Broker) LogTail(n int) string {
	lines := strings.Split(strings.TrimRight(b.Log(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Buffer is a bytes.Buffer that a process writes to while a test reads it.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
