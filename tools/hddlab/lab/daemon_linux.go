package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// busyLimit is how long a mount may be in use still when its lab is to end.
	busyLimit = 2 * time.Second
	// endLimit is how long a daemon takes at most to end, before it counts as hung.
	endLimit = 30 * time.Second
)

// daemon is one lab, in the process that serves it.
type daemon struct {
	state  state
	dev    *device
	fuse   *fuse.Server
	loop   *loopDevice
	socket io.Closer

	ending sync.Mutex // one attempt at a time
	ended  chan struct{}
}

// Serve is the daemon: it sets the lab up, says "ready" or what went wrong on out, and serves until it is told to
// end, gets SIGTERM or SIGINT, or owner ends, which is a pipe that the owner holds; nil: it has none.
func Serve(c Config, owner io.Reader, out io.Writer) error {
	if err := c.Defaults(); err != nil {
		return err
	}
	d := &daemon{state: state{Config: c, Daemon: processOf(os.Getpid()), Loop: -1}, ended: make(chan struct{})}
	if owner != nil {
		d.state.Owner = processOf(os.Getppid())
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	if err := d.setUp(); err != nil {
		return errors.Join(err, d.end(true))
	}
	if _, err := fmt.Fprintln(out, ready); err != nil {
		return errors.Join(err, d.end(true))
	}
	gone := make(chan struct{})
	if owner != nil {
		go func() {
			_, _ = io.Copy(io.Discard, owner)
			close(gone)
		}()
	}
	select {
	case <-d.ended:
		return nil
	case <-gone:
	case <-signals:
	}
	return d.end(true)
}

const ready = "ready"

func (d *daemon) path(name string) string { return filepath.Join(d.state.Config.Dir, name) }

func (d *daemon) setUp() error {
	c := d.state.Config
	for _, name := range []string{"fuse", "mnt"} {
		if err := os.MkdirAll(d.path(name), 0o700); err != nil {
			return err
		}
	}
	if err := d.state.write(); err != nil {
		return err
	}
	var err error
	if d.dev, err = newDevice(c); err != nil {
		return err
	}
	d.dev.setInstant(true)
	fs, err := newFileSystem(c, d.dev)
	if err != nil {
		return err
	}
	if d.fuse, err = fs.mountFUSE(d.path("fuse")); err != nil {
		return err
	}
	if d.loop, err = attach(diskPath(c.Dir), c.Dir, !c.Buffered); err != nil {
		return err
	}
	d.state.Loop, d.state.Node = d.loop.number, d.loop.path
	if err := d.state.write(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := makeFS(ctx, c.FS, d.loop.path); err != nil {
		return err
	}
	if err := unix.Mount(d.loop.path, d.path("mnt"), c.FS, unix.MS_NOATIME, "discard"); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", d.loop.path, d.path("mnt"), err)
	}
	d.loop.release()
	d.dev.setInstant(false)
	return d.listen()
}

// end takes the lab down. Without force a mount that stays in use is an error, and the lab goes on.
func (d *daemon) end(force bool) error {
	d.ending.Lock()
	defer d.ending.Unlock()
	select {
	case <-d.ended:
		return nil
	default:
	}
	if d.dev != nil {
		d.dev.resume()
		d.dev.setInstant(true) // what is dirty goes out at once
	}
	hung := time.AfterFunc(endLimit, func() { _ = abort(d.path("fuse")) })
	defer hung.Stop()
	if err := unmount(d.path("mnt"), busyLimit, force); err != nil {
		if d.dev != nil && !force {
			d.dev.setInstant(false)
		}
		return err
	}
	var errs []error
	if d.loop != nil {
		errs = append(errs, d.loop.detach(diskPath(d.state.Config.Dir)))
	}
	if d.fuse != nil {
		if err := unmount(d.path("fuse"), busyLimit, false); err != nil {
			// Somebody holds the file system that is gone from the tree: it ends with errors.
			errs = append(errs, abort(d.path("fuse")), unmount(d.path("fuse"), time.Second, true))
		}
	}
	if d.dev != nil {
		d.dev.end()
	}
	if d.socket != nil {
		d.socket.Close()
	}
	errs = append(errs, tidy(d.state.Config.Dir))
	close(d.ended)
	return errors.Join(errs...)
}

// answer is one line of JSON to one line of command.
type answer struct {
	Error string
	Stats *Stats `json:",omitempty"`
}

// command does what a line on the control socket says.
func (d *daemon) command(line string) (a answer) {
	switch line {
	case "stop":
		d.dev.stop()
	case "resume":
		d.dev.resume()
	case "instant":
		d.dev.setInstant(true)
	case "modelled":
		d.dev.setInstant(false)
	case "stats":
		s := d.dev.stats()
		a.Stats = &s
	case "end", "end force":
		if err := d.end(line == "end force"); err != nil {
			a.Error = err.Error()
		}
	default:
		a.Error = fmt.Sprintf("no command is called %q", line)
	}
	return a
}

func (a answer) line() []byte {
	b, err := json.Marshal(a)
	if err != nil {
		b = []byte(`{"Error":"internal"}`)
	}
	return append(b, '\n')
}
