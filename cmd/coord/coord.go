// Package coord runs the coordinator alone: a server that ZooKeeper's clients take for a standalone
// ZooKeeper.
package coord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"platter/coord/config"
	"platter/coord/zkserver"
	"platter/io/backend"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/heap"
)

// Options are what a coordinator is started with.
type Options struct {
	Config  *config.Coordinator
	Backend string // io.backend
	Log     *slog.Logger
	Out     io.Writer // where it says that it is ready
	Version string
}

const (
	// coresPerPoller leaves most of the machine to the kernel's work for the connections, and to clients.
	coresPerPoller = 4
	// procsMin is how many goroutines may be in system calls, or run, without keeping others waiting until the runtime
	// notices: one waits for connections, one for the disk.
	procsMin = 4
)

// Run starts a coordinator, serves until ctx ends, and stops it. The error is the one line that says what went
// wrong.
func Run(ctx context.Context, o Options) error {
	started := time.Now()
	heap.Keep()
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), procsMin))
	dir := o.Config.Value("dataDir")
	fs, reason, err := backend.Select(o.Backend)
	if err != nil {
		return err
	}
	defer func() {
		if c, ok := fs.(io.Closer); ok {
			c.Close()
		}
	}()
	o.Log.Info("starting", "version", o.Version, "dir", dir, "backend", fs.Name(), "because", reason)
	o.lookForApache(fs, dir)
	s, err := zkserver.Start(ctx, serverConfig(o, fs))
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("%s is in use: another coordinator runs there", dir)
	}
	if err != nil {
		return err
	}
	if !o.Config.IsSet("clientPortAddress") {
		o.Log.Info("only this machine can connect: clientPortAddress opens the port to others")
	}
	o.ready(s, time.Since(started))
	go heap.ForgetStart()
	select {
	case <-ctx.Done():
		o.Log.Info("stopping")
	case <-s.Done():
	}
	if err := s.Close(); err != nil {
		return err
	}
	o.Log.Info("stopped")
	return nil
}

// apacheDir is where Apache ZooKeeper keeps its files, in its dataDir.
const apacheDir = "version-2"

// lookForApache warns of a data directory that was Apache ZooKeeper's: its nodes are not seen here.
func (o Options) lookForApache(fs disk.FS, dir string) {
	infos, err := fs.ReadDir(dir)
	if err != nil {
		return // it is made, or told of, when it is opened
	}
	if slices.ContainsFunc(infos, func(in disk.Info) bool { return in.Name == apacheDir }) {
		o.Log.Warn("the directory holds data of Apache ZooKeeper, which is not read: this coordinator has a tree of its own", "dir", filepath.Join(dir, apacheDir))
	}
}

func serverConfig(o Options, fs disk.FS) zkserver.Config {
	c := o.Config
	low, high := c.SessionTimeouts()
	ms := func(name string) time.Duration { return time.Duration(c.Int(name)) * time.Millisecond }
	purge := time.Duration(c.Int("autopurge.purgeInterval")) * time.Hour
	if purge == 0 && c.IsSet("autopurge.purgeInterval") {
		purge = -1 // never, as ZooKeeper has it
	}
	return zkserver.Config{
		FS: fs, Clock: clock.Real{}, Log: o.Log, Pollers: max(runtime.NumCPU()/coresPerPoller, 1),
		Dir: c.Value("dataDir"), LogDir: c.Value("dataLogDir"), Addr: c.Listener(),
		TickMs: c.Int("tickTime"), MinSessionMs: low, MaxSessionMs: high,
		MaxClientCnxns: c.Int("maxClientCnxns"), MaxCnxns: c.Int("maxCnxns"),
		FrameBytesMax: c.Int("jute.maxbuffer"), OutstandingLimit: c.Int("globalOutstandingLimit"),
		SnapCount: c.Int("snapCount"), SnapRetain: c.Int("autopurge.snapRetainCount"), PurgeEvery: purge,
		SyncWarn:           ms("fsync.warningthresholdms"),
		FourLetterWords:    c.List("4lw.commands.whitelist"),
		ExtendedTypes:      c.Bool("extendedTypesEnabled"),
		EnforceQuota:       c.Bool("enforceQuota"),
		ContainerCheck:     ms("znode.container.checkIntervalMs"),
		ContainerNeverUsed: ms("znode.container.maxNeverUsedIntervalMs"),
		ContainerPerMinute: c.Int("znode.container.maxPerMinute"),
		SuperDigest:        c.Value("DigestAuthenticationProvider.superDigest"),
		SkipACL:            c.Bool("skipACL"),
		ReconfigEnabled:    c.Bool("reconfigEnabled"),
		AdminAddr:          c.Admin(), AdminURL: c.Value("admin.commandURL"), AdminOptional: !c.AdminAsked(),
		Initial: c.Text(),
	}
}

// ready tells the user where everything is.
func (o Options) ready(s *zkserver.Server, took time.Duration) {
	o.Log.Info("ready", "listener", s.Addr().String(), "ms", took.Milliseconds())
	text := fmt.Sprintf("Platter %s, coordinator, ready in %d ms\n  %-13s %s\n  %-13s %s\n", o.Version, took.Milliseconds(),
		"listening on", s.Addr(), "data in", o.Config.Value("dataDir"))
	if a := s.AdminAddr(); a != nil {
		text += fmt.Sprintf("  %-13s http://%s%s\n", "admin page", a, o.Config.Value("admin.commandURL"))
	}
	// Nobody may be there to read it; the coordinator serves all the same.
	_, _ = fmt.Fprint(o.Out, text)
}
