// Package zkcli is what `platter zk` does: it looks at and changes the tree of a coordinator, ours or Apache
// ZooKeeper, over the coordinator's own protocol, as zkCli.sh does. Output is made for people, or with JSON set
// for scripts: one JSON value a line.
package zkcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"platter/coord/zkclient"
)

// Options say whom to talk to, and how to print.
type Options struct {
	Connect string // host:port,…/chroot
	Timeout time.Duration
	Session time.Duration // asked-for session timeout
	Auth    []string      // scheme:credentials, digest:user:password
	JSON    bool
	Out     io.Writer
	// Shell has watches print what comes beside the commands that follow, instead of waiting for it: a line at a time,
	// from another goroutine, to Out.
	Shell bool
}

// Tool is a session with a coordinator. Its methods are the commands.
type Tool struct {
	zk     *zkclient.Client
	o      Options
	silent atomic.Bool   // a shell's events are not printed
	opened Options       // as they were at first, for events
	told   chan struct{} // closed when all events have been told of
}

// Open connects. The caller closes the tool.
func Open(ctx context.Context, o Options) (*Tool, error) {
	servers, chroot, err := zkclient.ParseConnect(o.Connect)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	told := make(chan struct{})
	// A chroot that is not there is an empty tree, not one to be made by looking.
	zk, err := zkclient.Connect(within, zkclient.Config{
		Servers: servers, Chroot: chroot, SessionTimeout: o.Session, ChrootMustExist: true,
		OnState: func(s zkclient.State) {
			if s == zkclient.Closed || s == zkclient.Expired {
				close(told)
			}
		},
	})
	switch {
	case errors.Is(err, zkclient.ErrNoNode):
		return nil, fmt.Errorf("%s has no node %s", strings.Join(servers, ","), chroot)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, fmt.Errorf("no coordinator answers at %s: %w", strings.Join(servers, ","), err)
	case err != nil:
		return nil, err
	}
	t := &Tool{zk: zk, o: o, opened: o, told: told}
	for _, a := range o.Auth {
		scheme, credentials, _ := strings.Cut(a, ":")
		if err := t.AddAuth(within, scheme, credentials); err != nil {
			t.Close()
			return nil, err
		}
	}
	return t, nil
}

// Close ends the session, and with it its ephemeral nodes. A shell's events that came before are printed.
func (t *Tool) Close() {
	_ = t.zk.Close()
	select {
	case <-t.told:
	case <-time.After(t.o.Timeout): // whoever reads what is printed has stopped
	}
}

// AddAuth proves who we are, from now on.
func (t *Tool) AddAuth(ctx context.Context, scheme, credentials string) error {
	in, cancel := t.within(ctx)
	defer cancel()
	return t.zk.AddAuth(in, scheme, []byte(credentials))
}

// PrintWatches says whether a shell prints events.
func (t *Tool) PrintWatches(on bool) { t.silent.Store(!on) }

// PrintsWatches reports whether a shell prints events.
func (t *Tool) PrintsWatches() bool { return !t.silent.Load() }

// SetOutput changes how the next commands print.
func (t *Tool) SetOutput(out io.Writer, asJSON bool) { t.o.Out, t.o.JSON = out, asJSON }

// within bounds one command that asks and is answered.
func (t *Tool) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, t.o.Timeout)
}

func (t *Tool) line(format string, args ...any) error {
	_, err := fmt.Fprintf(t.o.Out, format+"\n", args...)
	return err
}

// emit prints a value as a line of JSON.
func (t *Tool) emit(v any) error { return json.NewEncoder(t.o.Out).Encode(v) }

// clean makes a path of what was typed: a trailing slash does no harm.
func clean(p string) string {
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	return path.Clean(p)
}

func join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

// walk visits a node and all below it, parents first, children by name. What goes while it is looked at is
// passed over. Permission that is missing below the first node is handed to visit with the error.
func (t *Tool) walk(ctx context.Context, root string, visit func(path string, err error) error) error {
	left := []string{root}
	for len(left) > 0 {
		p := left[len(left)-1]
		left = left[:len(left)-1]
		names, err := t.children(ctx, p)
		switch {
		case errors.Is(err, zkclient.ErrNoNode) && p != root:
			continue
		case err != nil && !(errors.Is(err, zkclient.ErrNoAuth) && p != root):
			return err
		}
		if err := visit(p, err); err != nil {
			return err
		}
		for _, name := range slices.Backward(names) {
			left = append(left, join(p, name))
		}
	}
	return nil
}

func (t *Tool) children(ctx context.Context, p string) ([]string, error) {
	ctx, cancel := t.within(ctx)
	defer cancel()
	names, _, err := t.zk.Children(ctx, p, nil)
	return names, err
}
