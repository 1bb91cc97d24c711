package proc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"platter/coord/realzk"
	"platter/coord/zkclient"
)

// CoordinatorVariable in the environment says which coordinator the brokers that New makes use: Embedded (or
// nothing), Alone or ZooKeeper. So one suite runs over all three.
const CoordinatorVariable = "PLATTER_TEST_COORDINATOR"

// Kinds of coordinator.
const (
	Embedded  = "embedded"  // inside the broker
	Alone     = "coord"     // `platter coord`
	ZooKeeper = "zookeeper" // Apache ZooKeeper, where it is installed
)

// CoordinatorTickMs is the tick of the coordinators that are started here: sessions time out after 2 to 20
// of it.
const CoordinatorTickMs = 500

// Coordinator is a coordinator in a process of its own, which ends with this one. Its methods are for one
// goroutine.
type Coordinator struct {
	Addr string
	kind string
	bin  string
	dir  string
	real *realzk.Server
	pipe io.Closer
	cmd  *exec.Cmd
	pid  int
}

// StartCoordinator starts an Alone or a ZooKeeper over dir, and returns once it serves. The error says why it
// cannot; for ZooKeeper that it is not installed.
func StartCoordinator(kind, bin, dir string) (*Coordinator, error) {
	c := &Coordinator{kind: kind, bin: bin, dir: dir}
	if kind == Alone {
		port, err := choosePort()
		if err != nil {
			return nil, err
		}
		c.Addr = fmt.Sprintf("127.0.0.1:%d", port)
	}
	return c, c.Start()
}

// Start starts it again over the same data, at the same address, after Kill.
func (c *Coordinator) Start() error {
	if c.kind == ZooKeeper {
		o := realzk.Options{TickMs: CoordinatorTickMs, Dir: c.dir, HeapMB: 192}
		if c.real != nil {
			o.PortFrom = c.real.Port
		}
		s, err := realzk.Start(o)
		if err == nil {
			c.real, c.Addr, c.pid = s, s.Addr, s.Pid
		}
		return err
	}
	// The shell ends the coordinator when the pipe closes: also when this process dies without a word.
	c.cmd = exec.Command("sh", "-c", `"$@" >>log 2>&1 </dev/null & echo $!; cat; kill -9 $! 2>/dev/null; wait $! 2>/dev/null`, "sh", c.bin, "coord",
		"--listen", c.Addr, "--data", filepath.Join(c.dir, "data"), "--set", fmt.Sprint("tickTime=", CoordinatorTickMs),
		"--set", "maxClientCnxns=0", "--set", "admin.enableServer=false")
	c.cmd.Dir = c.dir
	var err error
	if c.pipe, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	if c.pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	zk, err := zkclient.Connect(ctx, zkclient.Config{Servers: []string{c.Addr}})
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		return fmt.Errorf("platter coord: %w\n%s", err, log)
	}
	return zk.Close()
}

// Kill ends it by SIGKILL.
func (c *Coordinator) Kill() {
	if c.kind == ZooKeeper {
		c.real.Stop()
		return
	}
	_ = c.Signal(syscall.SIGKILL)
	c.pipe.Close()
	_ = c.cmd.Wait()
}

// Signal sends sig.
func (c *Coordinator) Signal(sig syscall.Signal) error {
	p, err := os.FindProcess(c.pid)
	if err != nil {
		return err
	}
	return p.Signal(sig)
}

// CoordinatorKind is what CoordinatorVariable says.
func CoordinatorKind(t testing.TB) string {
	switch v := os.Getenv(CoordinatorVariable); v {
	case "":
		return Embedded
	case Embedded, Alone, ZooKeeper:
		return v
	default:
		t.Fatalf("%s=%s: not %s, %s or %s", CoordinatorVariable, v, Embedded, Alone, ZooKeeper)
		return ""
	}
}

// shared is the one coordinator of a test process, in which every data directory has a chroot.
var shared struct {
	sync.Mutex
	coordinator *Coordinator
	dir         string
	err         error
	chroots     map[string]string
}

// sharedConnect gives zookeeper.connect for a broker over dir. Where there is no ZooKeeper the test is skipped.
func sharedConnect(t testing.TB, kind, bin, dir string) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.chroots == nil {
		shared.chroots = map[string]string{}
		if shared.dir, shared.err = os.MkdirTemp("", "platter-coordinator-"); shared.err == nil {
			shared.coordinator, shared.err = StartCoordinator(kind, bin, shared.dir)
		}
	}
	switch {
	case shared.err != nil && kind == ZooKeeper:
		t.Skipf("Apache ZooKeeper: %v", shared.err)
	case shared.err != nil:
		t.Fatal(shared.err)
	}
	chroot := shared.chroots[dir]
	if chroot == "" {
		chroot = fmt.Sprintf("/cluster-%d", len(shared.chroots)+1)
		shared.chroots[dir] = chroot
	}
	return shared.coordinator.Addr + chroot
}

func stopShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.coordinator != nil && shared.err == nil {
		shared.coordinator.Kill()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
}
