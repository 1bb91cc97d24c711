package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"platter/tools/proc"
)

// Network is a network of the test's own: each host is a network namespace with a cable to a router, a namespace
// too, which drops what passes between hosts that are cut off from each other, without a word to the sender. The
// test itself has a cable to the router. It is gone when the test ends.
//
// Addresses are 10.S.K.2 with the router at 10.S.K.1: S is free on this machine, K is the host's number, and
// the test's is testHost.
type Network struct {
	t      testing.TB
	name   string
	second int
	hosts  map[string]string // name → address
	rules  [][]string
}

const (
	testHost             = 250
	secondMin, secondMax = 213, 250
)

// NewNetwork makes the router and the test's cable. The error says why there can be none here.
func NewNetwork(t testing.TB) (*Network, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("network namespaces need iproute2: %w", err)
	}
	removeLeftNetworks()
	n := &Network{t: t, name: fmt.Sprintf("platter-%d", os.Getpid()), hosts: map[string]string{}}
	t.Cleanup(n.remove)
	router := n.router()
	for _, args := range [][]string{
		{"netns", "add", router},
		{"netns", "exec", router, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"},
		{"link", "add", n.cable("t"), "type", "veth", "peer", "name", "test", "netns", router},
		{"link", "set", n.cable("t"), "up"},
	} {
		if err := ip(args...); err != nil {
			return nil, err
		}
	}
	if err := n.claim(); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"-n", router, "addr", "add", n.address(testHost, 1) + "/24", "dev", "test"},
		{"-n", router, "link", "set", "test", "up"},
		{"addr", "add", n.address(testHost, 2) + "/24", "dev", n.cable("t")},
		{"route", "replace", n.all(), "via", n.address(testHost, 1)},
		// Whether this kernel has rules that drop.
		{"-n", router, "rule", "add", "from", n.address(1, 2), "to", n.address(2, 2), "blackhole"},
		{"-n", router, "rule", "del", "from", n.address(1, 2), "to", n.address(2, 2), "blackhole"},
	} {
		if err := ip(args...); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// claim takes a private network that nobody has here. The kernel refuses a second route to the same addresses, so of
// two test processes that look at the same time only one gets it.
func (n *Network) claim() error {
	var last error
	for n.second = secondMin; n.second <= secondMax; n.second++ {
		out, err := exec.Command("ip", "route", "show", "table", "all", "to", "root", n.all()).Output()
		if err != nil {
			return err
		}
		if len(strings.TrimSpace(string(out))) > 0 {
			continue
		}
		if last = ip("route", "add", n.all(), "dev", n.cable("t")); last == nil {
			return nil
		}
	}
	return fmt.Errorf("no private network is free: %w", last)
}

// removeLeftNetworks removes those of test processes that were killed.
func removeLeftNetworks() {
	spaces, _ := filepath.Glob("/run/netns/platter-*")
	for _, path := range spaces {
		name := filepath.Base(path)
		f := strings.Split(name, "-")
		pid, err := strconv.Atoi(f[1])
		if err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); os.IsNotExist(err) {
			_ = ip("netns", "del", name) // cables go with it
		}
	}
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (n *Network) router() string { return n.name + "-router" }

// cable is an interface's name in the test's own namespace; 15 characters at most.
func (n *Network) cable(end string) string { return fmt.Sprintf("plt%d%s", os.Getpid(), end) }

func (n *Network) address(host, end int) string {
	return fmt.Sprintf("10.%d.%d.%d", n.second, host, end)
}

// all is the network, with all its hosts.
func (n *Network) all() string { return fmt.Sprintf("10.%d.0.0/16", n.second) }

func (n *Network) remove() {
	for host := range n.hosts {
		_ = ip("netns", "del", n.name+"-"+host)
	}
	_ = ip("link", "del", n.cable("t"))
	_ = ip("netns", "del", n.router())
}

// Host makes a host and gives its address, and what to put in front of a command to run it there.
func (n *Network) Host(name string) (address string, wrap []string) {
	n.t.Helper()
	k := len(n.hosts) + 1
	space, router, port := n.name+"-"+name, n.router(), fmt.Sprintf("h%d", k)
	n.hosts[name] = n.address(k, 2)
	for _, args := range [][]string{
		{"netns", "add", space},
		{"-n", space, "link", "set", "lo", "up"},
		{"-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", router},
		{"-n", space, "addr", "add", n.address(k, 2) + "/24", "dev", "eth0"},
		{"-n", space, "link", "set", "eth0", "up"},
		{"-n", router, "addr", "add", n.address(k, 1) + "/24", "dev", port},
		{"-n", router, "link", "set", port, "up"},
		{"-n", space, "route", "add", "default", "via", n.address(k, 1)},
	} {
		if err := ip(args...); err != nil {
			n.t.Fatal(err)
		}
	}
	return n.hosts[name], []string{"ip", "netns", "exec", space}
}

// Move makes a broker run on a host of its own.
func (n *Network) Move(b *proc.Broker, name string) {
	n.t.Helper()
	address, wrap := n.Host(name)
	b.MoveTo(address, wrap...)
}

// Cut drops from now on what one host sends to another, and nothing that comes back.
func (n *Network) Cut(from, to string) {
	n.drop("from", n.hosts[from], "to", n.hosts[to])
}

// Isolate drops all that a host sends or is sent.
func (n *Network) Isolate(host string) {
	n.drop("from", n.hosts[host])
	n.drop("to", n.hosts[host])
}

func (n *Network) drop(what ...string) {
	n.t.Helper()
	rule := append(append([]string{}, what...), "blackhole")
	if err := ip(append([]string{"-n", n.router(), "rule", "add"}, rule...)...); err != nil {
		n.t.Fatal(err)
	}
	n.rules = append(n.rules, rule)
}

// Heal makes everything pass again.
func (n *Network) Heal() {
	n.t.Helper()
	for _, rule := range n.rules {
		if err := ip(append([]string{"-n", n.router(), "rule", "del"}, rule...)...); err != nil {
			n.t.Fatal(err)
		}
	}
	n.rules = nil
}
