// Package brokerbench measures the broker process against the bare programs of bench/ceiling: neighbouring
// runs in one session, as pairs, with the CPU time of the measured process alone.
package brokerbench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"platter/bench/cputime"
	"platter/bench/stats"
)

// child is a measured process.
type child struct {
	cmd  *exec.Cmd
	addr string
	http string
}

// startBare runs `platter bench bare`, which prints its address on the first line.
func startBare(exe string, args ...string) (*child, error) {
	cmd := exec.Command(exe, append([]string{"bench", "bare"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("the bare program did not start: %w", err)
	}
	return &child{cmd: cmd, addr: strings.TrimSpace(line)}, nil
}

// startBroker runs `platter broker` over dir with fresh ports and waits until it is ready.
func startBroker(ctx context.Context, exe, dir string, settings []string) (*child, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	httpPort, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &child{addr: fmt.Sprintf("127.0.0.1:%d", port), http: fmt.Sprintf("127.0.0.1:%d", httpPort)}
	lines := append([]string{
		"broker.id=0",
		"listeners=PLAINTEXT://" + c.addr,
		"log.dirs=" + filepath.Join(dir, "data"),
		"metrics.listener=" + c.http,
		"log.segment.delete.delay.ms=0",
		"metrics.pprof=true",
	}, settings...)
	file := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	c.cmd = commandOver(exe, dir)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if err := c.waitReady(ctx); err != nil {
		c.stop()
		text, _ := os.ReadFile(filepath.Join(dir, "broker.log"))
		return nil, fmt.Errorf("the broker did not start: %w\n%s", err, text)
	}
	return c, nil
}

// commandOver is the broker over dir, by the properties file there, printing to broker.log.
func commandOver(exe, dir string) *exec.Cmd {
	cmd := exec.Command(exe, "broker", "--config", filepath.Join(dir, "server.properties"))
	cmd.Dir = dir
	if f, err := os.OpenFile(filepath.Join(dir, "broker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
		cmd.Stdout, cmd.Stderr = f, f
	}
	return cmd
}

func (c *child) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if body, err := get(ctx, "http://"+c.http+"/ready"); err == nil {
			body.Close()
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

// stop ends the process, politely first.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	_ = c.cmd.Wait()
}

// measure runs work, which says how many payload bytes it moved.
func (c *child) measure(work func() (int64, error)) (stats.Sample, error) {
	before, err := cputime.Of(c.cmd.Process.Pid)
	if err != nil {
		return stats.Sample{}, err
	}
	start := time.Now()
	n, err := work()
	wall := time.Since(start)
	if err != nil {
		return stats.Sample{}, err
	}
	after, err := cputime.Of(c.cmd.Process.Pid)
	if err != nil {
		return stats.Sample{}, err
	}
	return stats.Sample{Bytes: n, Seconds: wall.Seconds(), CPUSeconds: (after - before).Seconds()}, nil
}

// tempDir makes a directory below parent and returns its absolute path: the children work elsewhere.
func tempDir(parent string) (string, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, "platter-bench-")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// saveProfile writes a CPU profile of the broker over d to path.
func (c *child) saveProfile(ctx context.Context, path string, d time.Duration) error {
	body, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", c.http, max(1, int(d.Seconds()))))
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return errors.Join(err, f.Close())
}
