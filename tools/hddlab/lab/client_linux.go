package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Lab is one that is set up. Its methods are safe for concurrent use.
type Lab struct {
	Dir   string
	Mount string // the file system
	owner io.Closer
}

// Check tells what this machine lacks for a lab with such a file system; nil: nothing.
func Check(fs string) error {
	if os.Geteuid() != 0 {
		return errors.New("a disk lab needs root")
	}
	for _, dev := range []string{"/dev/fuse", "/dev/loop-control"} {
		f, err := os.OpenFile(dev, os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("a disk lab needs %s: %w", dev, err)
		}
		f.Close()
	}
	if _, err := exec.LookPath("mkfs." + fs); err != nil {
		return fmt.Errorf("a disk lab with %s needs mkfs.%s", fs, fs)
	}
	known, err := os.ReadFile("/proc/filesystems")
	if err == nil && !strings.Contains(string(known), "\t"+fs+"\n") {
		_ = exec.Command("modprobe", fs).Run()
		if known, _ = os.ReadFile("/proc/filesystems"); !strings.Contains(string(known), "\t"+fs+"\n") {
			return fmt.Errorf("a disk lab with %s needs a kernel that has it", fs)
		}
	}
	return nil
}

// Start sets a lab up that lives no longer than this process. exe is the hddlab binary.
func Start(ctx context.Context, exe string, c Config) (*Lab, error) { return start(ctx, exe, c, true) }

// Up sets a lab up that lives until somebody takes it down.
func Up(ctx context.Context, exe string, c Config) (*Lab, error) { return start(ctx, exe, c, false) }

// DaemonArg is the first argument of a daemon; the second is its Config as JSON, the third "owned" or "free".
const DaemonArg = "daemon"

func start(ctx context.Context, exe string, c Config, owned bool) (*Lab, error) {
	if err := c.Defaults(); err != nil {
		return nil, err
	}
	if err := Check(c.FS); err != nil {
		return nil, err
	}
	if err := Sweep(); err != nil {
		return nil, fmt.Errorf("removing dead labs: %w", err)
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	if c.Dir, err = filepath.EvalSymlinks(c.Dir); err != nil { // as the kernel tells of it
		return nil, err
	}
	if s, err := readState(c.Dir); err != nil {
		return nil, err
	} else if s != nil && s.Daemon.alive() {
		return nil, fmt.Errorf("%s has a lab already, served by process %d", c.Dir, s.Daemon.ID)
	}
	return launch(ctx, exe, c, owned)
}

func launch(ctx context.Context, exe string, c Config, owned bool) (*Lab, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	kind := map[bool]string{true: "owned", false: "free"}[owned]
	log, err := os.OpenFile(filepath.Join(c.Dir, "daemon.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(exe, DaemonArg, string(text), kind)
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // a Ctrl-C at the terminal is not for it
	cmd.Stderr = log
	l := &Lab{Dir: c.Dir, Mount: filepath.Join(c.Dir, "mnt")}
	if owned {
		if l.owner, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- strings.TrimSpace(line)
		_ = cmd.Wait() // reaps it, if it ends before us
	}()
	select {
	case line := <-said:
		if line == ready {
			return l, nil
		}
		b, _ := os.ReadFile(filepath.Join(c.Dir, "daemon.log"))
		return nil, fmt.Errorf("the lab in %s was not set up: %s", c.Dir, strings.TrimSpace(line+" "+string(b)))
	case <-ctx.Done():
		_ = cmd.Process.Signal(unix.SIGTERM)
		return nil, ctx.Err()
	}
}

// Open finds the lab in dir.
func Open(dir string) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	s, err := readState(dir)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, fmt.Errorf("%s is no lab: %w", dir, os.ErrNotExist)
	}
	return &Lab{Dir: dir, Mount: filepath.Join(dir, "mnt")}, nil
}

func (l *Lab) tell(line string) error {
	_, err := tell(l.Dir, line)
	return err
}

// Stop makes the disk hang: no request is answered any more.
func (l *Lab) Stop() error { return l.tell("stop") }

// Resume lets it go on.
func (l *Lab) Resume() error { return l.tell("resume") }

// SetInstant makes requests take no time, to fill the disk quickly, or the model's time again.
func (l *Lab) SetInstant(on bool) error {
	if on {
		return l.tell("instant")
	}
	return l.tell("modelled")
}

// Stats tells what the disk has done.
func (l *Lab) Stats() (Stats, error) {
	a, err := tell(l.Dir, "stats")
	if err != nil {
		return Stats{}, err
	}
	if a.Stats == nil {
		return Stats{}, errors.New("the lab's answer has no statistics")
	}
	return *a.Stats, nil
}

// Down takes the lab down and returns when nothing of it is left. A file system that is in use is an error, which
// names the users; with force it goes all the same, and they get errors. A lab that is dead is removed.
func (l *Lab) Down(force bool) error {
	s, err := readState(l.Dir)
	if s == nil || err != nil {
		return err
	}
	if !s.Daemon.alive() {
		return remove(l.Dir, s)
	}
	line := "end"
	if force {
		line = "end force"
	}
	if err := l.tell(line); err != nil && s.Daemon.alive() {
		if !force {
			return err
		}
		_ = unix.Kill(s.Daemon.ID, unix.SIGKILL)
		return errors.Join(waitDead(s.Daemon, endLimit), remove(l.Dir, s))
	}
	if l.owner != nil {
		l.owner.Close()
	}
	return waitDead(s.Daemon, endLimit)
}
