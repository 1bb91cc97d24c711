package broker

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"platter/engine/store"
)

// banner tells the user where everything is, and what to do next.
func (b *Broker) banner() {
	var addrs []string
	for _, l := range b.listeners {
		addrs = append(addrs, l.Addr().String())
	}
	coordinator := b.coordinatorName()
	if b.coordinator != nil {
		coordinator = b.coordinator.Addr().String() + " (in this process)"
	}
	b.o.Log.Info("ready", "broker", b.node.BrokerID(), "listeners", addrs, "metrics", b.consoleAddr, "coordinator", coordinator)
	lines := [][2]string{
		{"listening on", strings.Join(addrs, ", ") + b.toldClients(addrs)},
		{"data in", strings.Join(b.dataDirs(), ", ")},
		{"I/O backend", b.backend},
		{"coordinator", coordinator},
	}
	if b.consoleAddr != "" {
		lines = append(lines, [2]string{"metrics", "http://" + b.consoleAddr + "/metrics"})
	}
	var s strings.Builder
	fmt.Fprintf(&s, "Platter %s, broker %d, ready in %d ms\n", b.o.Version, b.node.BrokerID(), time.Since(b.started).Milliseconds())
	for _, l := range lines {
		fmt.Fprintf(&s, "  %-13s %s\n", l[0], l[1])
	}
	bootstrap := ""
	if first := reachable(b.listeners[0].Addr()); first != "127.0.0.1:9092" {
		bootstrap = " -b " + first
	}
	p := b.o.Program
	fmt.Fprintf(&s, "Try next:\n")
	fmt.Fprintf(&s, "  %s topic create hello%s\n", p, bootstrap)
	fmt.Fprintf(&s, "  echo 'hello, world' | %s produce -t hello%s\n", p, bootstrap)
	fmt.Fprintf(&s, "  %s consume -t hello -o beginning -e%s\n", p, bootstrap)
	// Nobody may be there to read it; the broker serves all the same.
	_, _ = fmt.Fprint(b.o.Out, s.String())
}

// toldClients names the addresses that clients are sent to, where they are not those that it listens on.
func (b *Broker) toldClients(listening []string) string {
	var told []string
	for _, e := range b.endpoints() {
		told = append(told, net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))))
	}
	if slices.Equal(told, listening) {
		return ""
	}
	return "; clients are told " + strings.Join(told, ", ")
}

// dataDirs are the data directories, those that failed marked.
func (b *Broker) dataDirs() []string {
	dirs := b.o.Config.List("log.dirs") // as the user wrote them
	for i, d := range b.store.Dirs() {
		if d.Offline != nil {
			dirs[i] += " (offline)"
		}
	}
	return dirs
}

// reachable is a listener's address as a client on this machine can use it: one that listens on every
// address is reached by loopback.
func reachable(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(t.Port))
	}
	return a.String()
}

// watchRecovery logs how far recovery is, every second that it takes; the function it returns ends that.
func (b *Broker) watchRecovery(p *store.Progress) (end func()) {
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				now := p.Snapshot()
				b.o.Log.Info("recovering",
					"logs", fmt.Sprintf("%d of %d", now.LogsDone, now.LogsTotal),
					"bytes", fmt.Sprintf("%d of %d", now.BytesScanned, now.BytesToScan))
			}
		}
	}()
	return func() { close(done); <-ended }
}
