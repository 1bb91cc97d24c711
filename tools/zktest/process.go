package zktest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"platter/tools/proc"
)

// Process is `platter coord`, as its users run it.
type Process struct {
	Addr string // its client port
	Log  *proc.Buffer
	cmd  *exec.Cmd
}

// Coord starts `platter coord` over dir with settings, name=value, on a port that is free. It is killed when the
// test ends. A test package that uses it has proc.Cleanup in its TestMain.
func Coord(t testing.TB, dir string, settings ...string) *Process {
	t.Helper()
	args := []string{"coord", "--listen", "127.0.0.1:0", "--data", dir, "--set", "admin.enableServer=false",
		"--set", "4lw.commands.whitelist=*", "--set", "maxClientCnxns=0"}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	p := &Process{Log: &proc.Buffer{}, cmd: exec.Command(proc.Binary(t), args...)}
	p.cmd.Stderr = p.Log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	addr := make(chan string, 1)
	go func() {
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			if f := strings.Fields(sc.Text()); len(f) == 3 && f[0] == "listening" {
				addr <- f[2]
			}
		}
		close(addr)
	}()
	select {
	case p.Addr = <-addr:
	case <-time.After(60 * time.Second):
	}
	if p.Addr == "" {
		p.Kill()
		t.Fatalf("platter coord did not start:\n%s", p.Log)
	}
	return p
}

// Kill sends SIGKILL and waits for the end; a process that has ended is no error.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// ResidentBytes is the process's memory, 0 where /proc does not tell.
func (p *Process) ResidentBytes() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}
