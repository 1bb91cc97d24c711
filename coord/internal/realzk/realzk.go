// Package realzk runs Apache ZooKeeper from Debian's package for tests that compare it with ours.
package realzk

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const jar = "/usr/share/java/zookeeper.jar"

// TickMs is the server's tickTime: session timeouts are from 2 to 20 of it.
const TickMs = 500

var (
	once sync.Once
	addr string
	stop func()
	why  error // it is not there
)

// Addr is the address of a real server, started once for all tests of a package, whose TestMain is
// Main. Where there is none the test is skipped, by name.
func Addr(t *testing.T) string {
	once.Do(func() { addr, stop, why = run() })
	if why != nil {
		t.Skipf("Apache ZooKeeper: %v", why)
	}
	return addr
}

// Main runs a package's tests and then stops the server.
func Main(m *testing.M) {
	code := m.Run()
	if stop != nil {
		stop()
	}
	os.Exit(code)
}

func run() (string, func(), error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return "", nil, err
	}
	if _, err := os.Stat(jar); err != nil {
		return "", nil, fmt.Errorf("the package zookeeper of Debian: %w", err)
	}
	port, claim, err := reserve(22100, 22199)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "real-zookeeper")
	if err != nil {
		return "", nil, err
	}
	config := fmt.Sprintf("tickTime=%d\ndataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\n"+
		"admin.enableServer=false\nmaxClientCnxns=0\n", TickMs, dir, port)
	if err := os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(config), 0o644); err != nil {
		return "", nil, err
	}
	// The shell ends the server when the pipe closes: also when this test dies without a word.
	cmd := exec.Command("sh", "-c", `"$@" >/dev/null 2>&1 </dev/null & cat; kill -9 $!`, "sh", java, "-Xmx256m",
		"-cp", dir+":"+jar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	addr := fmt.Sprint("127.0.0.1:", port)
	stop := func() {
		pipe.Close()
		cmd.Wait()
		claim.Close()
		os.RemoveAll(dir)
	}
	for began := time.Now(); !serves(addr); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			stop()
			return "", nil, fmt.Errorf("it did not serve within 30 s")
		}
	}
	return addr, stop, nil
}

// serves asks by a four-letter word.
func serves(addr string) bool {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Second))
	nc.Write([]byte("srvr"))
	answer, _ := io.ReadAll(nc)
	return strings.Contains(string(answer), "Mode: standalone")
}

// reserve takes a port that is free, and that no other test's server is about to take: the claim is a UDP
// socket of the same number, which lives as long as the server.
func reserve(from, to int) (int, io.Closer, error) {
	for port := from; port <= to; port++ {
		at := fmt.Sprint("127.0.0.1:", port)
		claim, err := net.ListenPacket("udp", at)
		if err != nil {
			continue
		}
		if ln, err := net.Listen("tcp", at); err == nil {
			ln.Close()
			return port, claim, nil
		}
		claim.Close()
	}
	return 0, nil, fmt.Errorf("no port from %d to %d is free", from, to)
}
