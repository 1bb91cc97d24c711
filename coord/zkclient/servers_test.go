package zkclient

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"platter/coord/zkserver"
	"platter/io/clock"
	"platter/io/memdisk"
)

// target is a server under test.
type target struct {
	addr    string
	restart func(t *testing.T) // nil: it cannot
}

// startOurs runs our server on a disk in memory.
func startOurs(t *testing.T, addr string, d *memdisk.FS) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Start(context.Background(), zkserver.Config{
		FS: d, Clock: clock.Real{}, Dir: "/zk", Addr: addr, TickMs: 200,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ours(t *testing.T) target {
	d := memdisk.New(memdisk.Options{})
	s := startOurs(t, "", d)
	t.Cleanup(func() { s.Close() })
	return target{addr: s.Addr().String(), restart: func(t *testing.T) {
		addr := s.Addr().String()
		s.Close()
		s = startOurs(t, addr, d)
	}}
}

// real is Apache ZooKeeper from Debian's package, started once for all tests.
var real struct {
	once sync.Once
	addr string
	stop func()
	why  string // it is not there
}

const realJar = "/usr/share/java/zookeeper.jar"

func startReal(t *testing.T) target {
	real.once.Do(func() { real.addr, real.stop, real.why = runReal() })
	if real.why != "" {
		t.Skipf("Apache ZooKeeper: %s", real.why)
	}
	return target{addr: real.addr}
}

func runReal() (addr string, stop func(), why string) {
	java, err := exec.LookPath("java")
	if err != nil {
		return "", nil, "java is not installed"
	}
	if _, err := os.Stat(realJar); err != nil {
		return "", nil, realJar + " is not there (Debian's package zookeeper)"
	}
	dir, err := os.MkdirTemp("", "real-zookeeper")
	if err != nil {
		return "", nil, err.Error()
	}
	port, ok := freePort(22100, 22199)
	if !ok {
		return "", nil, "no port from 22100 to 22199 is free"
	}
	config := fmt.Sprintf("tickTime=200\ndataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\n"+
		"admin.enableServer=false\nmaxClientCnxns=0\n", dir, port)
	if err := os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(config), 0o644); err != nil {
		return "", nil, err.Error()
	}
	// The shell ends the server when the pipe closes: also when this test dies without a word.
	cmd := exec.Command("sh", "-c", `"$@" >/dev/null 2>&1 </dev/null & cat; kill -9 $!`, "sh", java, "-Xmx256m",
		"-cp", dir+":"+realJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err.Error()
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err.Error()
	}
	return fmt.Sprint("127.0.0.1:", port), func() {
		pipe.Close()
		cmd.Wait()
		os.RemoveAll(dir)
	}, ""
}

func freePort(from, to int) (int, bool) {
	for port := from; port <= to; port++ {
		ln, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			ln.Close()
			return port, true
		}
	}
	return 0, false
}

func TestMain(m *testing.M) {
	code := m.Run()
	if real.stop != nil {
		real.stop()
	}
	os.Exit(code)
}

// onBoth runs a test against our server and against the real one.
func onBoth(t *testing.T, f func(t *testing.T, at target)) {
	t.Run("ours", func(t *testing.T) { f(t, ours(t)) })
	t.Run("apache", func(t *testing.T) { f(t, startReal(t)) })
}

// within is a context for a test that must not hang.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// cutter dials for a client, and lets a test cut its connection or keep it from coming back.
type cutter struct {
	mu     sync.Mutex
	conn   net.Conn
	barred bool
	deaf   bool // what is written goes nowhere
}

type cutConn struct {
	net.Conn
	c *cutter
}

func (c cutConn) Write(b []byte) (int, error) {
	c.c.mu.Lock()
	deaf := c.c.deaf
	c.c.mu.Unlock()
	if deaf {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cutter) dial(ctx context.Context, addr string) (Conn, error) {
	c.mu.Lock()
	barred := c.barred
	c.mu.Unlock()
	if barred {
		return nil, net.ErrClosed
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = nc
	return cutConn{nc, c}, nil
}

// set bars the client from dialling, makes its connection deaf, cuts it.
func (c *cutter) set(bar, deaf, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.barred, c.deaf = bar, deaf
	if cut && c.conn != nil {
		c.conn.Close()
	}
}
