package config

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
)

// Broker is a broker's effective settings.
type Broker struct {
	set        map[string]string // what was given at start, checked
	dynamic    atomic.Pointer[dynamic]
	listeners  []Listener
	advertised []Listener
	inter      string
}

// given returns what was set explicitly.
func (b *Broker) given(name string) (string, bool) {
	v, ok := b.set[name]
	return v, ok
}

// Value returns the effective value and where it came from. A setting without a value gives "". Units are
// merged: log.retention.ms is the effective retention even when only hours were set.
func (b *Broker) Value(name string) (string, Source) {
	d, ok := brokerTable.find(name)
	if !ok {
		panic("config: no broker setting " + name)
	}
	if v, source, ok := b.changed(name); ok {
		return v, source
	}
	if chain, ok := chains[name]; ok {
		return b.chainValue(chain)
	}
	if v, ok := b.given(name); ok {
		return v, StaticBroker
	}
	return d.Default, Default
}

// IsSet reports whether the setting was given a value, by its own name or by one that stands for it.
func (b *Broker) IsSet(name string) bool {
	_, src := b.Value(name)
	return src != Default
}

// Int, Int64, Bool, List read a checked value; a name without a definition is a bug and panics. A setting
// without a value is 0, false or empty.
func (b *Broker) Int(name string) int { return int(b.Int64(name)) }

// Int64 reads a whole number.
func (b *Broker) Int64(name string) int64 {
	v, _ := b.Value(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("config: %s=%s is not a whole number", name, v))
	}
	return n
}

// Bool reads a boolean.
func (b *Broker) Bool(name string) bool {
	v, _ := b.Value(name)
	on, err := parseBool(v)
	return err == nil && on
}

// List reads a comma-separated list.
func (b *Broker) List(name string) []string {
	v, _ := b.Value(name)
	return splitList(v)
}

// link is one setting that may give another its value; scale turns its unit into milliseconds.
type link struct {
	name  string
	scale int64
}

// chains are the settings that have several names, the first that was given counts; the last one's default
// is the default. Source: the descriptions of Kafka's broker settings.
var chains = map[string][]link{
	"log.dirs":                        {{"log.dirs", 1}, {"log.dir", 1}},
	"broker.id":                       {{"broker.id", 1}, {"node.id", 1}},
	"node.id":                         {{"broker.id", 1}, {"node.id", 1}},
	"log.retention.ms":                {{"log.retention.ms", 1}, {"log.retention.minutes", 60_000}, {"log.retention.hours", 3_600_000}},
	"log.roll.ms":                     {{"log.roll.ms", 1}, {"log.roll.hours", 3_600_000}},
	"log.roll.jitter.ms":              {{"log.roll.jitter.ms", 1}, {"log.roll.jitter.hours", 3_600_000}},
	"log.flush.interval.ms":           {{"log.flush.interval.ms", 1}, {"log.flush.scheduler.interval.ms", 1}},
	"zookeeper.connection.timeout.ms": {{"zookeeper.connection.timeout.ms", 1}, {"zookeeper.session.timeout.ms", 1}},
}

func (b *Broker) chainValue(chain []link) (string, Source) {
	for _, l := range chain {
		if v, ok := b.given(l.name); ok {
			return scaled(v, l.scale), StaticBroker
		}
	}
	last := chain[len(chain)-1]
	d, _ := brokerTable.find(last.name)
	return scaled(d.Default, last.scale), Default
}

// scaled turns hours or minutes into milliseconds. Below 0 is "for ever" in every unit.
func scaled(v string, scale int64) string {
	n, err := strconv.ParseInt(v, 10, 64)
	if scale == 1 || err != nil {
		return v
	}
	switch {
	case n < 0:
		n = -1
	case n > math.MaxInt64/scale:
		n = math.MaxInt64
	default:
		n *= scale
	}
	return strconv.FormatInt(n, 10)
}

// checkIdentity: Kafka's rules for broker.id, and node.id must not contradict it.
func (b *Broker) checkIdentity() error {
	id, idSet := b.given("broker.id")
	node, nodeSet := b.given("node.id")
	if idSet && nodeSet && id != node {
		return fmt.Errorf("broker.id=%s and node.id=%s contradict each other", id, node)
	}
	n, highest := b.Int64("broker.id"), b.Int64("reserved.broker.max.id")
	generate := b.Bool("broker.id.generation.enable")
	switch {
	case n < -1:
		return fmt.Errorf("broker.id=%d: out of range: from -1", n)
	case n == -1 && !generate:
		return fmt.Errorf("broker.id is not set, and broker.id.generation.enable=false")
	case generate && n > highest:
		return fmt.Errorf("broker.id=%d is above reserved.broker.max.id=%d: numbers from there on are generated ones", n, highest)
	}
	return nil
}

func (b *Broker) checkDirs() error {
	dirs := b.List("log.dirs")
	if len(dirs) == 0 {
		return fmt.Errorf("log.dirs names no directory")
	}
	seen := map[string]bool{}
	for _, d := range dirs {
		if seen[d] {
			return fmt.Errorf("log.dirs names %s twice", d)
		}
		seen[d] = true
	}
	return nil
}

// checkRetention: 0 is no retention time in any unit.
func (b *Broker) checkRetention() error {
	if ms := b.Int64("log.retention.ms"); ms == 0 || ms < -1 {
		return fmt.Errorf("log.retention.ms, .minutes or .hours: must be -1 (for ever) or at least 1")
	}
	return nil
}

// checkGroups: no member could ever join.
func (b *Broker) checkGroups() error {
	if lowest, highest := b.Int64("group.min.session.timeout.ms"), b.Int64("group.max.session.timeout.ms"); lowest > highest {
		return fmt.Errorf("group.min.session.timeout.ms=%d is above group.max.session.timeout.ms=%d", lowest, highest)
	}
	return nil
}

func (b *Broker) checkRequests() error {
	if q, one := b.Int64("queued.max.request.bytes"), b.Int64("socket.request.max.bytes"); q > 0 && q < one {
		return fmt.Errorf("queued.max.request.bytes=%d is less than one request may have (socket.request.max.bytes=%d)", q, one)
	}
	overrides, err := b.PerIPOverrides()
	if err != nil {
		return fmt.Errorf("max.connections.per.ip.overrides: %w", err)
	}
	if b.Int("max.connections.per.ip") == 0 && len(overrides) == 0 {
		return fmt.Errorf("max.connections.per.ip=0 lets nobody in; it goes with max.connections.per.ip.overrides only")
	}
	for _, name := range []string{"metrics.listener", "coordinator.listener"} {
		if v, _ := b.Value(name); v != "" {
			if err := checkHostPort(v); err != nil {
				return fmt.Errorf("%s=%s: %w", name, v, err)
			}
		}
	}
	if v, _ := b.Value("coordinator.listener"); v == "" {
		return fmt.Errorf("coordinator.listener must name an address; 127.0.0.1:0 picks a free port")
	}
	return nil
}

// PerIPOverrides reads max.connections.per.ip.overrides: host to count.
func (b *Broker) PerIPOverrides() (map[string]int, error) {
	out := map[string]int{}
	for _, s := range b.List("max.connections.per.ip.overrides") {
		i := strings.LastIndexByte(s, ':')
		if i < 1 {
			return nil, fmt.Errorf("%q is not host:count", s)
		}
		n, err := parseInt(s[i+1:], 0, math.MaxInt32)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		out[strings.Trim(s[:i], "[]")] = int(n)
	}
	return out, nil
}

func checkHostPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("not host:port")
	}
	if _, err := parseInt(port, 0, math.MaxUint16); err != nil {
		return fmt.Errorf("port %s: %w", port, err)
	}
	return nil
}

// ZooKeeper reads zookeeper.connect: the servers as host:port (2181 where no port is given), and the
// chroot ("" or "/path"). No servers: the embedded coordinator.
func (b *Broker) ZooKeeper() (servers []string, chroot string) {
	v, _ := b.Value("zookeeper.connect")
	if i := strings.IndexByte(v, '/'); i >= 0 {
		v, chroot = v[:i], strings.TrimSuffix(v[i:], "/")
	}
	for _, s := range splitList(v) {
		if _, _, err := net.SplitHostPort(s); err != nil {
			s = net.JoinHostPort(strings.Trim(s, "[]"), "2181")
		}
		servers = append(servers, s)
	}
	return servers, chroot
}

func (b *Broker) checkZooKeeper() error {
	servers, chroot := b.ZooKeeper()
	if chroot != "" && len(servers) == 0 {
		return fmt.Errorf("zookeeper.connect names a path but no server")
	}
	if strings.Contains(chroot, "//") {
		return fmt.Errorf("zookeeper.connect: the path %s has an empty part", chroot)
	}
	for _, s := range servers {
		if err := checkHostPort(s); err != nil {
			return fmt.Errorf("zookeeper.connect: %s: %w", s, err)
		}
	}
	return nil
}
