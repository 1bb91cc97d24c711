package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"platter/coord/cluster"
	"platter/coord/config"
	"platter/engine/store"
	"platter/io/backend"
	"platter/io/gate"
	"platter/net/console"
	"platter/net/server"
)

// listenOn opens one listener, with an error that says what is in the way.
func listenOn(ctx context.Context, setting, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: another process listens on %s already", setting, addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: no permission to listen on %s", setting, addr)
	}
	return nil, fmt.Errorf("%s: cannot listen on %s: %w", setting, addr, err)
}

func address(l config.Listener) string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// probe finds out whether the listeners can be opened, before the data directories are touched and
// recovery takes its time. They are opened for good only then: until this broker can answer, a client
// that comes to it must be refused at once, not left waiting.
func probe(ctx context.Context, ls []config.Listener) error {
	for _, l := range ls {
		if l.Port == 0 {
			continue
		}
		open, err := listenOn(ctx, "listeners", address(l))
		if err != nil {
			return err
		}
		if err := open.Close(); err != nil {
			return err
		}
	}
	return nil
}

// listen opens the listeners for good.
func (b *Broker) listen(ctx context.Context, _ *store.Progress) error {
	for _, l := range b.o.Config.Listeners() {
		open, err := listenOn(ctx, "listeners", address(l))
		if err != nil {
			return err
		}
		b.listeners = append(b.listeners, server.Listener{Name: l.Name, Listener: open})
		b.atStop("a listener", func(context.Context) error {
			if err := open.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				return err
			}
			return nil
		})
	}
	return nil
}

// port is the one that a listener truly has.
func (b *Broker) port(name string) int {
	for _, l := range b.listeners {
		if l.Name == name {
			return l.Addr().(*net.TCPAddr).Port
		}
	}
	return 0
}

// endpoints are what clients are told. An empty host is this machine's name, as in Kafka.
func (b *Broker) endpoints() []cluster.Endpoint {
	var out []cluster.Endpoint
	for _, a := range b.o.Config.Advertised() {
		e := cluster.Endpoint{Listener: a.Name, Protocol: a.Protocol, Host: a.Host, Port: int32(a.Port)}
		if e.Host == "" {
			e.Host = hostName()
		}
		if e.Port == 0 {
			e.Port = int32(b.port(a.Name))
		}
		out = append(out, e)
	}
	return out
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
}

// startConsole serves metrics, health and readiness. An address that the user chose must be free; the
// default one gives way, so that two brokers on one machine start without being told.
func (b *Broker) startConsole(ctx context.Context, p *store.Progress) error {
	b.metrics = console.NewMetrics()
	b.metrics.SetVersion(b.o.Version)
	b.metrics.SetBackend(b.fs.Name(), b.backend)
	b.metrics.WatchIO(b.choices, func() (backend.RingStats, bool) { return backend.Rings(b.fs) })
	b.metrics.WatchGates(gate.Process.Stats)
	b.metrics.WatchDisks(b.profiles)
	b.startDiskWatch()
	addr, source := b.o.Config.Value("metrics.listener")
	if addr == "" {
		return nil
	}
	l, err := listenOn(ctx, "metrics.listener", addr)
	if err != nil && source == config.Default {
		host, _, _ := net.SplitHostPort(addr)
		var second error
		if l, second = listenOn(ctx, "metrics.listener", net.JoinHostPort(host, "0")); second == nil {
			b.o.Log.Warn("metrics are served elsewhere", "reason", err, "addr", l.Addr().String())
			err = nil
		}
	}
	if err != nil {
		return err
	}
	b.consoleAddr = l.Addr().String()
	b.console = console.New(console.Config{
		Listener: l, Metrics: b.metrics, Progress: p, Log: b.o.Log.With("part", "console"),
		Profiles: b.o.Config.Bool("metrics.pprof"),
	})
	b.atStop("the metrics", b.console.Close)
	return nil
}

// resolveOverrides turns the hosts of max.connections.per.ip.overrides into the addresses that peers come from.
func resolveOverrides(ctx context.Context, c *config.Broker) (map[string]int, error) {
	byHost, err := c.PerIPOverrides()
	if err != nil {
		return nil, err
	}
	byAddress := map[string]int{}
	for host, n := range byHost {
		addrs, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return nil, fmt.Errorf("max.connections.per.ip.overrides: %w", err)
		}
		for _, a := range addrs {
			byAddress[a] = n
		}
	}
	return byAddress, nil
}

func millis(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(n, most)) * time.Millisecond
}
