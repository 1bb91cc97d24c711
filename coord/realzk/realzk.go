// Package realzk runs Apache ZooKeeper from Debian's package, for tests and benches that compare it with ours.
// The server is a standalone one on loopback, with a data directory of its own, and it ends with the
// process that started it, however that ends. Where Java or the package is missing, Start says which.
package realzk

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const jar = "/usr/share/java/zookeeper.jar"

// TickMs is the tickTime of the server that Addr starts: session timeouts are from two of it to MaxSessionMs.
const (
	TickMs       = 500
	MaxSessionMs = 90_000
)

var (
	once   sync.Once
	shared *Server
	why    error // it is not there
)

// Addr is the address of a real server, started once for all tests of a package, whose TestMain is
// Main. Where there is none the test is skipped, by name.
func Addr(t *testing.T) string {
	once.Do(func() {
		shared, why = Start(Options{TickMs: TickMs, Lines: []string{fmt.Sprint("maxSessionTimeout=", MaxSessionMs)}})
	})
	if why != nil {
		t.Skipf("Apache ZooKeeper: %v", why)
	}
	return shared.Addr
}

// Main runs a package's tests and then stops the server.
func Main(m *testing.M) {
	code := m.Run()
	if shared != nil {
		shared.Stop()
	}
	os.Exit(code)
}

// Options say how a server is set up.
type Options struct {
	TickMs   int      // tickTime; 0: 2000
	Lines    []string // more lines of zoo.cfg
	JVM      []string // Java's arguments: system properties such as -Dzookeeper.extendedTypesEnabled=true
	HeapMB   int      // -Xmx; 0: 256
	Jars     string   // a class path that is used instead of Debian's: another version
	Dir      string   // holds zoo.cfg and data; "" makes one, and Stop removes it
	PortFrom int      // the first of a hundred ports to choose from; 0: 22100
}

// Server is one running real ZooKeeper.
type Server struct {
	Addr  string // its client port
	Pid   int    // Java's process
	Port  int
	dir   string // to be removed
	pipe  io.Closer
	claim io.Closer
	cmd   *exec.Cmd
}

// Start starts a server and returns once it serves.
func Start(o Options) (*Server, error) {
	s, err := Launch(o)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); !serves(s.Addr); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 60*time.Second {
			s.Stop()
			return nil, fmt.Errorf("it did not serve within 60 s")
		}
	}
	return s, nil
}

// Launch starts a server and returns at once.
func Launch(o Options) (*Server, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, err
	}
	if o.Jars == "" {
		if _, err := os.Stat(jar); err != nil {
			return nil, fmt.Errorf("the package zookeeper of Debian: %w", err)
		}
		o.Jars = jar
	}
	if o.PortFrom == 0 {
		o.PortFrom = 22100
	}
	s := &Server{}
	if s.Port, s.claim, err = reserve(o.PortFrom, o.PortFrom+99); err != nil {
		return nil, err
	}
	s.Addr = fmt.Sprint("127.0.0.1:", s.Port)
	if o.Dir == "" {
		if s.dir, err = os.MkdirTemp("", "real-zookeeper"); err != nil {
			s.claim.Close()
			return nil, err
		}
		o.Dir = s.dir
	}
	if err := s.run(java, o); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) run(java string, o Options) error {
	if o.TickMs == 0 {
		o.TickMs = 2000
	}
	if o.HeapMB == 0 {
		o.HeapMB = 256
	}
	config := append([]string{
		fmt.Sprint("tickTime=", o.TickMs), fmt.Sprint("dataDir=", o.Dir, "/data"), fmt.Sprint("clientPort=", s.Port),
		"clientPortAddress=127.0.0.1", "admin.enableServer=false", "maxClientCnxns=0",
	}, o.Lines...)
	file := filepath.Join(o.Dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(strings.Join(config, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	// The shell ends the server when the pipe closes: also when this process dies without a word.
	args := []string{"-c", `"$@" >server.log 2>&1 </dev/null & echo $!; cat; kill -9 $! 2>/dev/null; wait $! 2>/dev/null`, "sh", java,
		fmt.Sprintf("-Xmx%dm", o.HeapMB)}
	args = append(args, o.JVM...)
	args = append(args, "-cp", o.Dir+":"+o.Jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	s.cmd = exec.Command("sh", args...)
	s.cmd.Dir = o.Dir
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if s.pipe, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	s.Pid, err = strconv.Atoi(strings.TrimSpace(line))
	return err
}

// Stop kills the server, and removes the directory that Launch made.
func (s *Server) Stop() {
	if s.pipe != nil {
		s.pipe.Close()
		s.cmd.Wait()
	}
	s.claim.Close()
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
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
