package zkclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"platter/coord/zk"
)

const (
	sessionTimeoutDefault = 18 * time.Second // zookeeper.session.timeout.ms
	// closeTime is how long Close waits for the server to end the session.
	closeTime = 5 * time.Second
)

// Client is safe for concurrent use. Requests go out in call order.
type Client struct {
	config Config
	chroot string // "" or "/path"
	notify *notifier

	life context.Context // ends with the client
	kill context.CancelFunc
	gone chan struct{} // closed when the connection goroutine has ended

	mu       sync.Mutex
	closing  bool
	link     *link         // the live connection, or nil
	ready    chan struct{} // closed when link appears, or with err
	err      error         // why the client is dead
	id       int64
	password []byte
	timeout  time.Duration // negotiated
	zxid     int64         // the last that a reply told of, and up to which all watches have told
	rearming int           // SetWatches requests that were not answered yet
	xid      int32
	next     int // the server to try next
	watches  watchTable
	auths    []zk.AuthRequest // that the server has accepted
}

// Connect dials until a session is there or ctx ends. A session given in Config that the server no
// longer knows is ErrSessionExpired.
func Connect(ctx context.Context, config Config) (*Client, error) {
	if len(config.Servers) == 0 {
		return nil, fmt.Errorf("zookeeper: no servers are given")
	}
	chroot := strings.TrimRight(config.Chroot, "/")
	if chroot != "" && chroot[0] != '/' {
		return nil, fmt.Errorf("zookeeper: chroot %q does not start with /", config.Chroot)
	}
	if config.SessionTimeout <= 0 {
		config.SessionTimeout = sessionTimeoutDefault
	}
	c := &Client{
		config: config, chroot: chroot, notify: newNotifier(),
		gone: make(chan struct{}), ready: make(chan struct{}),
		id: config.SessionID, password: slices.Clone(config.Password), timeout: config.SessionTimeout,
		watches: newWatchTable(),
	}
	c.life, c.kill = context.WithCancel(context.Background())
	p := &patience{pause: backoffMin}
	l, err := c.dial(ctx, p)
	if err != nil {
		c.die(err)
		close(c.gone)
		return nil, err
	}
	go c.run(l, p)
	if chroot != "" {
		if err := c.ensureChroot(ctx); err != nil {
			if ctx.Err() != nil { // there is no time to tell the server
				c.Drop()
			} else {
				c.Close()
			}
			return nil, fmt.Errorf("zookeeper: chroot: %w", err)
		}
	}
	return c, nil
}

func (c *Client) ensureChroot(ctx context.Context) error {
	if c.config.ChrootMustExist {
		_, err := c.Exists(ctx, "/", nil)
		return err
	}
	return c.ensureFull(ctx, c.chroot, nil)
}

// Session is what Config.SessionID and Password re-attach.
func (c *Client) Session() (id int64, password []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id, slices.Clone(c.password)
}

// Timeout is the session timeout that the server has agreed to.
func (c *Client) Timeout() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timeout
}

// Close ends the session (its ephemeral nodes go) and the connection. The error says that the server
// could not be told in a few seconds: the session is then left to its timeout.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return c.close(ctx)
}

func (c *Client) close(ctx context.Context) error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	end := ifOK(func(*zk.Decoder) { c.die(ErrClosed) }) // before the connection's end is seen, which the server makes
	err := ErrConnectionLoss
	for errors.Is(err, ErrConnectionLoss) { // then ask again
		err = c.do(ctx, request{op: zk.OpCloseSession, reply: end})
	}
	c.Drop()
	if errors.Is(err, ErrSessionExpired) {
		return nil // it has ended
	}
	return err
}

// Drop closes the connection and leaves the session to its timeout.
func (c *Client) Drop() {
	c.die(ErrClosed)
	<-c.gone
}

// die ends the client for the first cause it is given: waiting requests end with it, and every watch
// is told.
func (c *Client) die(cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = cause
	closing := c.closing
	l := c.link
	c.link = nil
	if l == nil {
		close(c.ready)
	}
	lost := c.watches.takeAll()
	c.mu.Unlock()
	c.kill()
	if l != nil {
		l.fail(cause)
	}
	state := Closed
	if errors.Is(cause, ErrSessionExpired) && !closing {
		state = Expired
	}
	c.tell(state)
	for _, w := range lost {
		c.notify.add(func() { w.call(Event{Type: SessionLost, Path: w.path}) })
	}
	c.notify.end()
}

// tell queues a state callback.
func (c *Client) tell(s State) {
	if f := c.config.OnState; f != nil {
		c.notify.add(func() { f(s) })
	}
}

// full is a path as the server knows it.
func (c *Client) full(path string) string {
	if c.chroot == "" {
		return path
	}
	if path == "/" {
		return c.chroot
	}
	return c.chroot + path
}

// local is full's inverse.
func (c *Client) local(path string) string {
	if c.chroot == "" {
		return path
	}
	if path = strings.TrimPrefix(path, c.chroot); path == "" {
		return "/"
	}
	return path
}
