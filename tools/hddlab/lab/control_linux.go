package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// listen serves DIR/control: a connection sends lines of command, and gets a line each.
func (d *daemon) listen() error {
	l, err := nearby(d.state.Config.Dir, func(path string) (net.Listener, error) { return net.Listen("unix", path) })
	if err != nil {
		return err
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // its path is another process's; tidy removes it
	}
	d.socket = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.converse(c)
		}
	}()
	return nil
}

const lineBytesMax = 256

func (d *daemon) converse(c net.Conn) {
	defer c.Close()
	sc := bufio.NewScanner(c)
	sc.Buffer(make([]byte, lineBytesMax), lineBytesMax)
	for sc.Scan() {
		if _, err := c.Write(d.command(sc.Text()).line()); err != nil {
			return
		}
	}
}

// nearby gives call a short path of DIR/control: a socket's may have 107 bytes only.
func nearby[T any](dir string, call func(path string) (T, error)) (T, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", dir, err)
	}
	defer unix.Close(fd)
	return call(fmt.Sprintf("/proc/self/fd/%d/control", fd))
}

// commandLimit is longer than an orderly end may take.
const commandLimit = 2 * endLimit

// tell sends one command to the lab in dir.
func tell(dir, line string) (answer, error) {
	c, err := nearby(dir, func(path string) (net.Conn, error) { return net.Dial("unix", path) })
	if err != nil {
		if _, missing := os.Stat(filepath.Join(dir, "control")); errors.Is(missing, os.ErrNotExist) {
			return answer{}, fmt.Errorf("%s is no lab, or one that was not set up: %w", dir, os.ErrNotExist)
		}
		return answer{}, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(commandLimit))
	if _, err := fmt.Fprintln(c, line); err != nil {
		return answer{}, err
	}
	var a answer
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return answer{}, fmt.Errorf("the lab in %s does not answer: %w", dir, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}
