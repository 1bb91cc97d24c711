package zkserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"platter/coord/realzk"
	"platter/coord/zkclient"
	"platter/io/clock"
	"platter/io/portable"
)

// killedEnv makes this test binary a server: "dir address".
const killedEnv = "PLATTER_TEST_ZKSERVER"

func TestMain(m *testing.M) {
	dir, addr, ok := strings.Cut(os.Getenv(killedEnv), " ")
	if !ok {
		realzk.Main(m)
	}
	s, err := Start(context.Background(), Config{FS: portable.New(), Clock: clock.Real{}, Dir: dir, Addr: addr})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(s.Addr())
	io.Copy(io.Discard, os.Stdin) // until the test dies, if it does not kill first
}

// process is a server that can be killed.
type process struct {
	cmd  *exec.Cmd
	addr string
}

func startProcess(t *testing.T, dir, addr string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedEnv+"="+dir+" "+addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "failed") {
		t.Fatal(line, err)
	}
	return process{cmd, strings.TrimSpace(line)}
}

func (p process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// TestKill kills the server's process again and again under writes: what was acknowledged stays, once;
// sequence numbers are not given twice; the clients' sessions and ephemeral nodes live on.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir, "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(context.Background(), 180*time.Second)
	defer cancel()
	var writers sync.WaitGroup
	stop := make(chan struct{})
	acked := make([][]string, 3)
	clients := make([]*zkclient.Client, len(acked))
	for i := range acked {
		c, err := zkclient.Connect(ctx, zkclient.Config{Servers: []string{p.addr}, SessionTimeout: 40 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Drop()
		clients[i] = c
		if _, err := c.Create(ctx, fmt.Sprint("/alive", i), nil, zkclient.Ephemeral); err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				made, err := c.Create(ctx, fmt.Sprintf("/w%d-%d-", i, n), nil, zkclient.PersistentSequential)
				switch {
				case err == nil:
					acked[i] = append(acked[i], made)
				case !errors.Is(err, zkclient.ErrConnectionLoss):
					t.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	for i := range 6 {
		time.Sleep(time.Duration(20+40*i) * time.Millisecond)
		p.kill()
		p = startProcess(t, dir, p.addr)
	}
	close(stop)
	writers.Wait()
	defer p.kill()

	names, _, err := clients[0].Children(ctx, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	there, suffixes := map[string]bool{}, map[string]string{}
	for _, name := range names {
		there["/"+name] = true
		if i := strings.LastIndex(name, "-"); i > 0 {
			if other := suffixes[name[i:]]; other != "" {
				t.Errorf("%s and %s have one sequence number", other, name)
			}
			suffixes[name[i:]] = name
		}
	}
	for i, made := range acked {
		if len(made) == 0 {
			t.Errorf("writer %d wrote nothing", i)
		}
		if alive := fmt.Sprint("/alive", i); !there[alive] {
			t.Errorf("%s is gone, and its session lives", alive)
		}
		for _, path := range made {
			if !there[path] {
				t.Errorf("%s was acknowledged and is lost", path)
			}
		}
	}
}
