package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Listener is one address, of listeners or of advertised.listeners. An empty Host is every address (to
// listen on) or this machine's name (to advertise); Port 0 picks one (to listen on) or is the port that was
// picked (to advertise).
type Listener struct {
	Name     string // upper case, unique
	Protocol string // security protocol: PLAINTEXT
	Host     string
	Port     int
}

func (l Listener) String() string {
	return l.Name + "://" + net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
}

// Listeners are the addresses to listen on.
func (b *Broker) Listeners() []Listener { return slices.Clone(b.listeners) }

// Advertised are the addresses that clients are told, each with the name of a listener.
func (b *Broker) Advertised() []Listener { return slices.Clone(b.advertised) }

// InterBroker is the name of the listener that the other brokers come to.
func (b *Broker) InterBroker() string { return b.inter }

func (b *Broker) readListeners() error {
	protocols, err := b.protocolMap()
	if err != nil {
		return fmt.Errorf("listener.security.protocol.map: %w", err)
	}
	v, _ := b.Value("listeners")
	if old, ok := b.oldListener("host.name", "port", "127.0.0.1", 9092); ok && !b.IsSet("listeners") {
		v = old
	}
	if b.listeners, err = parseListeners(v, protocols); err != nil {
		return fmt.Errorf("listeners: %w", err)
	}
	if len(b.listeners) == 0 {
		return fmt.Errorf("listeners names no address")
	}
	if err := checkPorts(b.listeners); err != nil {
		return fmt.Errorf("listeners: %w", err)
	}
	if err := b.readAdvertised(protocols); err != nil {
		return err
	}
	return b.readInterBroker()
}

// oldListener makes a listener of the settings that came before listeners.
func (b *Broker) oldListener(hostName, portName, host string, port int) (string, bool) {
	h, hostSet := b.given(hostName)
	p, portSet := b.given(portName)
	if hostSet {
		host = h
	}
	if portSet {
		port, _ = strconv.Atoi(p)
	}
	return "PLAINTEXT://" + net.JoinHostPort(host, strconv.Itoa(port)), hostSet || portSet
}

func (b *Broker) readAdvertised(protocols map[string]string) error {
	first := b.listeners[0]
	v, ok := b.given("advertised.listeners")
	if old, oldOK := b.oldListener("advertised.host.name", "advertised.port", first.Host, first.Port); oldOK && !ok {
		v, ok = old, true
	}
	if !ok {
		for _, l := range b.listeners {
			if isWildcard(l.Host) {
				return fmt.Errorf("listeners: clients cannot be told to come to %s: set advertised.listeners to a name or address that they can reach", l.Host)
			}
		}
		b.advertised = b.listeners
		return nil
	}
	var err error
	if b.advertised, err = parseListeners(v, protocols); err != nil {
		return fmt.Errorf("advertised.listeners: %w", err)
	}
	for _, a := range b.advertised {
		switch {
		case isWildcard(a.Host):
			return fmt.Errorf("advertised.listeners: clients cannot come to %s: name an address that they can reach", a.Host)
		case !slices.ContainsFunc(b.listeners, func(l Listener) bool { return l.Name == a.Name }):
			return fmt.Errorf("advertised.listeners: %s is not among the listeners", a.Name)
		}
	}
	return nil
}

func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// readInterBroker finds the listener for the other brokers: by its name, or the first that speaks
// security.inter.broker.protocol. Naming both is an error, as in Kafka.
func (b *Broker) readInterBroker() error {
	name, named := b.given("inter.broker.listener.name")
	protocol, _ := b.Value("security.inter.broker.protocol")
	if named && b.IsSet("security.inter.broker.protocol") {
		return fmt.Errorf("inter.broker.listener.name and security.inter.broker.protocol exclude each other")
	}
	if protocol != plaintext {
		return fmt.Errorf("security.inter.broker.protocol=%s cannot be honoured: there is no TLS or SASL yet", protocol)
	}
	for _, l := range b.advertised {
		if (named && l.Name == strings.ToUpper(name)) || (!named && l.Protocol == protocol) {
			b.inter = l.Name
			return nil
		}
	}
	if named {
		return fmt.Errorf("inter.broker.listener.name=%s is not among the advertised listeners", name)
	}
	return fmt.Errorf("no advertised listener speaks security.inter.broker.protocol=%s", protocol)
}

const plaintext = "PLAINTEXT"

// protocolMap reads listener.security.protocol.map: listener name to security protocol.
func (b *Broker) protocolMap() (map[string]string, error) {
	m := map[string]string{}
	for _, pair := range b.List("listener.security.protocol.map") {
		name, protocol, ok := strings.Cut(pair, ":")
		name, protocol = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(protocol))
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("%q is not NAME:PROTOCOL", pair)
		case !slices.Contains([]string{plaintext, "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, protocol):
			return nil, fmt.Errorf("%q is no security protocol", protocol)
		case m[name] != "":
			return nil, fmt.Errorf("%s stands there twice", name)
		}
		m[name] = protocol
	}
	return m, nil
}

// parseListeners reads "NAME://host:port,…". A listener whose protocol cannot be served is an error.
func parseListeners(v string, protocols map[string]string) ([]Listener, error) {
	var out []Listener
	for _, s := range splitList(v) {
		name, addr, ok := strings.Cut(s, "://")
		if !ok {
			return nil, fmt.Errorf("%q is not NAME://host:port", s)
		}
		l := Listener{Name: strings.ToUpper(name)}
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("%q is not NAME://host:port", s)
		}
		n, err := parseInt(port, 0, math.MaxUint16)
		if err != nil {
			return nil, fmt.Errorf("%q: port: %w", s, err)
		}
		l.Host, l.Port = host, int(n)
		if l.Protocol, ok = protocols[l.Name]; !ok {
			return nil, fmt.Errorf("%s has no security protocol in listener.security.protocol.map", l.Name)
		}
		if l.Protocol != plaintext {
			return nil, fmt.Errorf("%s cannot be honoured: there is no TLS or SASL yet, so it would be open to everyone", s)
		}
		if slices.ContainsFunc(out, func(o Listener) bool { return o.Name == l.Name }) {
			return nil, fmt.Errorf("%s stands there twice", l.Name)
		}
		out = append(out, l)
	}
	return out, nil
}

// checkPorts: each listener has a port of its own, but for an IPv4 and an IPv6 address that share one.
func checkPorts(ls []Listener) error {
	byPort := map[int][]Listener{}
	for _, l := range ls {
		if l.Port == 0 {
			continue
		}
		for _, o := range byPort[l.Port] {
			a, c := net.ParseIP(l.Host), net.ParseIP(o.Host)
			if a == nil || c == nil || (a.To4() == nil) == (c.To4() == nil) {
				return fmt.Errorf("%s and %s have the same port", o, l)
			}
		}
		byPort[l.Port] = append(byPort[l.Port], l)
	}
	return nil
}
