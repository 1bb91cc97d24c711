package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"platter/coord/realzk"
)

// server is one process under comparison, over a directory of its own.
type server struct {
	name string
	addr string
	pid  int
	stop func()
}

// launcher starts a kind of server over a new directory, without waiting for it.
type launcher func(dir string) (*server, error)

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// child starts a process that ends when its standard input does, or is killed by stop.
func child(name, addr, binary string, args ...string) (*server, io.Reader, error) {
	cmd := exec.Command(binary, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return &server{name: name, addr: addr, pid: cmd.Process.Pid, stop: func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}}, out, nil
}

// coordLauncher runs `platter coord`, from a binary that is built into dir when none is named.
func coordLauncher(binary, dir string, settings ...string) (launcher, error) {
	if binary == "" {
		var err error
		if binary, err = filepath.Abs(filepath.Join(dir, "platter")); err != nil {
			return nil, err
		}
		cmd := exec.Command("go", "build", "-o", binary, "platter/cmd/platter")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	return func(dir string) (*server, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		addr := fmt.Sprint("127.0.0.1:", port)
		args := []string{"coord", "--listen", addr, "--data", dir, "--log-level", "error"}
		for _, x := range append([]string{"maxClientCnxns=0", "admin.enableServer=false"}, settings...) {
			args = append(args, "--set", x)
		}
		s, _, err := child("ours", addr, binary, args...)
		return s, err
	}, nil
}

func launchReal(dir string) (*server, error) {
	s, err := realzk.Launch(realzk.Options{Dir: dir, HeapMB: 1000, PortFrom: 21600})
	if err != nil {
		return nil, fmt.Errorf("a real ZooKeeper: %w", err)
	}
	return &server{name: "Apache's", addr: s.Addr, pid: s.Pid, stop: s.Stop}, nil
}

func launchBare(dir string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s, out, err := child("bare", "", self, "bare", "-dir", dir)
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("the bare loop did not start: %w", err)
	}
	s.addr = strings.TrimSpace(line)
	return s, nil
}

// begin launches a server in a new directory below dir and waits for its first answers.
func begin(launch launcher, dir string) (*server, start, error) {
	own, err := os.MkdirTemp(dir, "data")
	if err != nil {
		return nil, start{}, err
	}
	if own, err = filepath.Abs(own); err != nil {
		return nil, start{}, err
	}
	began := time.Now()
	s, err := launch(own)
	if err != nil {
		return nil, start{}, err
	}
	took, err := firstAnswers(s.addr, began, nil)
	if err != nil {
		s.stop()
		return nil, start{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return s, took, nil
}
