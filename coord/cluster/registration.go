package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"platter/coord/zkclient"
)

// A broker registers by /brokers/ids/N, ephemeral, Kafka's JSON version 5, and a controller by
// /controller, version 2. Both carry one key more than Kafka's: "platter". Kafka's own tools and others
// that read these znodes look keys up by name and pass over it; we know our own by it, and refuse a
// chroot in which anybody else is registered.

// marker is the value of the key "platter"; it counts up when brokers of two versions must not mix.
const marker = 1

// Registration is a broker's znode. Foreign: it lacks our mark.
type Registration struct {
	Broker      Broker // without Epoch, which is the Stat's czxid
	TimestampMs int64
	Foreign     bool
}

type brokerJSON struct {
	Features    map[string]any    `json:"features"`
	Protocols   map[string]string `json:"listener_security_protocol_map"`
	Endpoints   []string          `json:"endpoints"`
	JMXPort     int               `json:"jmx_port"`
	Port        int32             `json:"port"`
	Host        *string           `json:"host"`
	Version     int               `json:"version"`
	TimestampMs string            `json:"timestamp"`
	Rack        *string           `json:"rack,omitempty"`
	Platter     int               `json:"platter,omitempty"`
}

// EncodeBroker is the value of /brokers/ids/N. host and port repeat the first PLAINTEXT endpoint for
// old clients, null and -1 when there is none.
func EncodeBroker(b Broker, nowMs int64) []byte {
	j := brokerJSON{
		Features:    map[string]any{},
		Protocols:   make(map[string]string, len(b.Endpoints)),
		Endpoints:   make([]string, 0, len(b.Endpoints)),
		JMXPort:     -1,
		Port:        -1,
		Version:     5,
		TimestampMs: strconv.FormatInt(nowMs, 10),
		Platter:     marker,
	}
	for i := range b.Endpoints {
		e := &b.Endpoints[i]
		j.Protocols[e.Listener] = e.Protocol
		j.Endpoints = append(j.Endpoints, fmt.Sprintf("%s://%s:%d", e.Listener, bracketed(e.Host), e.Port))
		if j.Host == nil && e.Protocol == "PLAINTEXT" {
			j.Host, j.Port = &e.Host, e.Port
		}
	}
	if b.Rack != "" {
		j.Rack = &b.Rack
	}
	return encode(j)
}

// DecodeBroker reads versions 1 to 5.
func DecodeBroker(id int32, p []byte) (Registration, error) {
	var j brokerJSON
	if err := decode(p, &j); err != nil {
		return Registration{}, err
	}
	r := Registration{Broker: Broker{ID: id}, Foreign: j.Platter == 0}
	r.TimestampMs, _ = strconv.ParseInt(j.TimestampMs, 10, 64) // for people; not worth refusing a broker
	if j.Rack != nil {
		r.Broker.Rack = *j.Rack
	}
	switch {
	case j.Version < 1:
		return Registration{}, fmt.Errorf("%w: broker %d: version %d", ErrZnode, id, j.Version)
	case j.Version == 1:
		if j.Host == nil {
			return Registration{}, fmt.Errorf("%w: broker %d: no host", ErrZnode, id)
		}
		r.Broker.Endpoints = []Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: *j.Host, Port: j.Port}}
		return r, nil
	}
	for _, s := range j.Endpoints {
		e, err := parseEndpoint(s, j.Protocols)
		if err != nil {
			return Registration{}, fmt.Errorf("broker %d: %w", id, err)
		}
		r.Broker.Endpoints = append(r.Broker.Endpoints, e)
	}
	return r, nil
}

// parseEndpoint reads LISTENER://host:port; without a map the listener is named by its protocol.
func parseEndpoint(s string, protocols map[string]string) (Endpoint, error) {
	bad := fmt.Errorf("%w: endpoint %.200q", ErrZnode, s)
	listener, address, ok := strings.Cut(s, "://")
	colon := strings.LastIndexByte(address, ':')
	if !ok || listener == "" || colon < 0 {
		return Endpoint{}, bad
	}
	port, err := strconv.ParseUint(address[colon+1:], 10, 16)
	if err != nil {
		return Endpoint{}, bad
	}
	e := Endpoint{Listener: listener, Protocol: listener, Host: strings.Trim(address[:colon], "[]"), Port: int32(port)}
	if protocols != nil {
		if e.Protocol, ok = protocols[listener]; !ok {
			return Endpoint{}, bad
		}
	}
	return e, nil
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

type controllerJSON struct {
	Version     int    `json:"version"`
	BrokerID    *int32 `json:"brokerid"`
	TimestampMs string `json:"timestamp"`
	KRaftEpoch  int    `json:"kraftControllerEpoch"`
	Platter     int    `json:"platter,omitempty"`
}

// EncodeController is the value of /controller.
func EncodeController(broker int32, nowMs int64) []byte {
	return encode(controllerJSON{Version: 2, BrokerID: &broker, TimestampMs: strconv.FormatInt(nowMs, 10), KRaftEpoch: -1, Platter: marker})
}

// DecodeController gives the broker that is the controller, and whether it lacks our mark.
func DecodeController(p []byte) (broker int32, foreign bool, err error) {
	var j controllerJSON
	if err := decode(p, &j); err != nil {
		return 0, false, err
	}
	if j.BrokerID == nil {
		return 0, false, fmt.Errorf("%w: controller %.200q", ErrZnode, p)
	}
	return *j.BrokerID, j.Platter == 0, nil
}

// ForeignError: a broker or controller that is not Platter's is registered in the chroot.
type ForeignError struct {
	Path string
	ID   int32
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: broker %d is not a Platter broker: use another chroot, or stop that cluster", e.Path, e.ID)
}

// Getter reads many znodes, pipelined (*zkclient.Client).
type Getter interface {
	GetMany(ctx context.Context, paths []string) ([]zkclient.Node, error)
}

// ReadBrokers reads the registrations with these names (children of /brokers/ids); who left meanwhile is
// left out. A *ForeignError comes beside the others that are ours.
func ReadBrokers(ctx context.Context, zk Getter, names []string) ([]Broker, error) {
	var paths []string
	var ids []int32
	for _, name := range names {
		id, err := ParseBrokerID(name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
		paths = append(paths, BrokerPath(id))
	}
	nodes, err := zk.GetMany(ctx, paths)
	if err != nil {
		return nil, err
	}
	var live []Broker
	var foreign error
	for i, n := range nodes {
		if errors.Is(n.Err, zkclient.ErrNoNode) {
			continue
		}
		if n.Err != nil {
			return nil, n.Err
		}
		r, err := DecodeBroker(ids[i], n.Data)
		if err != nil || r.Foreign { // nobody of ours writes what cannot be read
			foreign = &ForeignError{Path: n.Path, ID: ids[i]}
			continue
		}
		r.Broker.Epoch = n.Stat.Czxid
		live = append(live, r.Broker)
	}
	return live, foreign
}
