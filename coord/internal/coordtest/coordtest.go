// Package coordtest runs the embedded coordinator for tests of what stands on it.
package coordtest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"platter/coord/zkclient"
	"platter/coord/zkserver"
	"platter/io/clock"
	"platter/io/disk"
)

// Quiet is a log that nobody reads.
var Quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// SessionTimeout is what Client asks for, and others should: no busy machine makes a living session miss it.
const SessionTimeout = 30 * time.Second

// Coordinator is an embedded server that may be stopped and started again at one address.
type Coordinator struct {
	Addr string

	t   *testing.T
	fs  disk.FS
	srv *zkserver.Server
}

// Start runs a server on fs, in /zk, until the test ends.
func Start(t *testing.T, fs disk.FS) *Coordinator {
	t.Helper()
	c := &Coordinator{Addr: "127.0.0.1:0", t: t, fs: fs}
	c.Restart()
	t.Cleanup(c.Stop)
	return c
}

// Restart starts it again after Stop.
func (c *Coordinator) Restart() {
	c.t.Helper()
	srv, err := zkserver.Start(context.Background(), zkserver.Config{
		FS: c.fs, Clock: clock.Real{}, Dir: "/zk", Addr: c.Addr, TickMs: 2000, Log: Quiet,
		MinSessionMs: 200, MaxSessionMs: int(SessionTimeout.Milliseconds()),
	})
	Must(c.t, err)
	c.srv, c.Addr = srv, srv.Addr().String()
}

// Stop ends it; sessions stay on its disk.
func (c *Coordinator) Stop() {
	if c.srv != nil {
		c.srv.Close()
		c.srv = nil
	}
}

// Client is a session of the test's own.
func (c *Coordinator) Client() *zkclient.Client {
	c.t.Helper()
	zk, err := zkclient.Connect(c.t.Context(), zkclient.Config{Servers: []string{c.Addr}, SessionTimeout: SessionTimeout})
	Must(c.t, err)
	c.t.Cleanup(zk.Drop)
	return zk
}

// Must ends the test on an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits for f, a minute at most.
func Eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 12000 {
		if f() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("not in a minute: " + what)
}
