package proc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const (
	roleVariable = "PLATTER_TEST_ROLE"
	argsVariable = "PLATTER_TEST_ARGS"
)

// RunRole runs this process in the role that StartChild gave it, and ends it; in a process that has none it
// returns. Call it first in TestMain.
func RunRole(roles map[string]func(args []byte) error) {
	name := os.Getenv(roleVariable)
	if name == "" {
		return
	}
	role := roles[name]
	if role == nil {
		fmt.Fprintf(os.Stderr, "no role is called %q\n", name)
		os.Exit(2)
	}
	if err := role([]byte(os.Getenv(argsVariable))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Child is a client that can be killed: the test's own binary as another process, in one of its roles. What
// it writes to standard output before it dies is not lost.
type Child struct {
	Lines <-chan string // what it prints, a line each; closed at its end
	in    io.WriteCloser
	cmd   *exec.Cmd
	done  chan struct{}
	err   error
}

// StartChild starts a child with args, as JSON. It is killed when the test ends.
func StartChild(t testing.TB, role string, args any) *Child {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, argsVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1024)
	c := &Child{Lines: lines, in: in, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer close(lines)
		sc := bufio.NewScanner(out)
		sc.Buffer(nil, 16<<20)
		for sc.Scan() {
			lines <- sc.Text()
		}
		c.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		for range lines {
		}
	})
	return c
}

// Tell writes a line to the child's standard input. A child that is dead does not hear it.
func (c *Child) Tell(line string) { _, _ = io.WriteString(c.in, line+"\n") }

// Signal sends a signal; SIGKILL kills. A child that has ended does not feel it.
func (c *Child) Signal(sig syscall.Signal) { _ = c.cmd.Process.Signal(sig) }

// Wait returns what the child ended with. Somebody must read Lines meanwhile.
func (c *Child) Wait() error {
	<-c.done
	return c.err
}
