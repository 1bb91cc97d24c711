// Package peer is this broker's connections to the others, and what it asks of them: the controller's pushes,
// a leader's changed in-sync sets, followers' fetches, and clients' requests that only the controller can answer.
//
// # Lanes
//
// A connection belongs to a broker and a lane. On one lane there is one request at a time, in the order of the
// calls. An answer's bytes are the lane's, and are decoded or copied before the next request has its turn; only a
// fetch lane, which has one caller, lends them until that caller's next request. A connection that fails in any way
// is closed; the next request opens a new one. Requests are not tried again here: whoever asked knows whether that
// would do harm.
//
// # Errors
//
// What the other broker answered is one of the sentinels of the layers below (codes.go); an *Unreachable is that
// no answer came, so that the request may or may not have been carried out.
package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
)

const (
	// frameBytesMax bounds an answer; the largest are fetches, whose size this broker chooses.
	frameBytesMax = 256 << 20
	// growBytes is how much memory is taken before the bytes for it are there.
	growBytes = 1 << 20
	// keptBytes is the largest buffer that a lane keeps for its next answer.
	keptBytes = 16 << 20
	// setupTimeout bounds a connect where nothing else is said: a host that does not even refuse.
	setupTimeout = 3 * time.Second
)

// Unreachable: no answer came from a broker.
type Unreachable struct {
	Broker int32
	Cause  error
}

func (e *Unreachable) Error() string { return fmt.Sprintf("broker %d: %v", e.Broker, e.Cause) }
func (e *Unreachable) Unwrap() error { return e.Cause }

// ErrNotThere: no such broker is known.
var ErrNotThere = errors.New("no such broker is registered")

// Config is what a Pool needs.
type Config struct {
	BrokerID int32
	// Epoch is this broker's registration.
	Epoch func() int64
	// Listener is the name of the one that brokers reach each other by (inter.broker.listener.name).
	Listener string
	// Image finds the other brokers and the controller.
	Image              func() *cluster.Image
	SetupTimeout       time.Duration // socket.connection.setup.timeout.ms; 0: three seconds
	ReceiveBufferBytes int           // replica.socket.receive.buffer.bytes: of fetches; -1, 0: the system's
	PushTimeout        time.Duration // controller.socket.timeout.ms: of a controller's request; 0: no bound of its own
	// Dial connects; nil: TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Pool is the connections. Safe for concurrent use.
type Pool struct {
	cfg     Config
	format  *kmsg.RequestFormatter // of what this broker asks for itself
	forward *kmsg.RequestFormatter // of what it asks for a client

	mu        sync.Mutex
	closed    bool
	lanes     map[laneKey]*lane
	forwarded int // how often no lane was idle
}

type laneKey struct {
	broker int32
	name   string
	n      int // of several by this name
}

// lane is one connection, or the place for one.
type lane struct {
	turn chan struct{} // holds one token: whose turn it is
	addr string
	conn net.Conn
	next int32 // correlation id
	buf  []byte
	gone bool // it was hung up for good
}

// New makes a pool without connections.
func New(c Config) *Pool {
	if c.Dial == nil {
		if c.SetupTimeout <= 0 {
			c.SetupTimeout = setupTimeout
		}
		c.Dial = (&net.Dialer{Timeout: c.SetupTimeout}).DialContext
	}
	return &Pool{
		cfg:     c,
		format:  kmsg.NewRequestFormatter(kmsg.FormatterClientID("broker-" + strconv.Itoa(int(c.BrokerID)))),
		forward: kmsg.NewRequestFormatter(kmsg.FormatterClientID(ForwardClient)),
		lanes:   map[laneKey]*lane{},
	}
}

// broker finds a registered broker.
func (p *Pool) broker(id int32) (cluster.Broker, error) {
	b, ok := p.cfg.Image().Broker(id)
	if !ok {
		return b, &Unreachable{id, ErrNotThere}
	}
	return b, nil
}

// do sends a request, whose version is set, and gives the answer. Strings and arrays of it are its own; records
// of a fetch are borrowed from the lane until its next request.
func (p *Pool) do(ctx context.Context, to cluster.Broker, name string, req kmsg.Request) (kmsg.Response, error) {
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	format := p.format
	if name == forwardLane {
		format = p.forward
	}
	err := p.exchange(ctx, to, name, call{
		flexible: resp.IsFlexible(),
		request:  func(dst []byte, id int32) []byte { return format.AppendRequest(dst, req, id) },
		take:     resp.ReadFrom,
	})
	if err != nil {
		return nil, &Unreachable{to.ID, fmt.Errorf("%s: %w", kmsg.NameForKey(req.Key()), err)}
	}
	return resp, nil
}

// call is one request and what becomes of its answer.
type call struct {
	flexible bool
	request  func(dst []byte, id int32) []byte // appends a whole frame
	take     func(body []byte) error           // takes the answer, whose bytes are the lane's, while the turn is held
}

// exchange sends a request and hands its answer over, in the lane's turn.
func (p *Pool) exchange(ctx context.Context, to cluster.Broker, name string, c call) error {
	endpoint, ok := to.Endpoint(p.cfg.Listener)
	if !ok {
		return fmt.Errorf("it has no listener %s", p.cfg.Listener)
	}
	l, err := p.take(ctx, to.ID, name)
	if err != nil {
		return err
	}
	defer func() { l.turn <- struct{}{} }()
	addr := net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port)))
	if l.conn != nil && l.addr != addr {
		l.hangUp()
	}
	if l.conn == nil {
		if l.conn, err = p.cfg.Dial(ctx, "tcp", addr); err != nil {
			l.conn = nil
			return err
		}
		l.addr = addr
		if tcp, ok := l.conn.(*net.TCPConn); ok && p.cfg.ReceiveBufferBytes > 0 && strings.HasPrefix(name, fetchPrefix) {
			if err := tcp.SetReadBuffer(p.cfg.ReceiveBufferBytes); err != nil {
				l.hangUp()
				return err
			}
		}
	}
	if err := l.exchange(ctx, c); err != nil {
		l.hangUp()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return err
	}
	return nil
}

// take waits for the turn on a lane, which the caller gives back.
func (p *Pool) take(ctx context.Context, broker int32, name string) (*lane, error) {
	l, idle, err := p.find(broker, name)
	switch {
	case err != nil:
		return nil, err
	case idle:
		return l, nil
	}
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.gone {
		l.turn <- struct{}{}
		return nil, net.ErrClosed
	}
	return l, nil
}

// find finds a lane: of the ones for what is forwarded the first that is idle, whose turn is the caller's then.
func (p *Pool) find(broker int32, name string) (l *lane, idle bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, net.ErrClosed
	}
	if name != forwardLane {
		return p.lane(laneKey{broker: broker, name: name}), false, nil
	}
	for n := range forwardLanes {
		l = p.lane(laneKey{broker, name, n})
		select {
		case <-l.turn:
			return l, true, nil
		default:
		}
	}
	p.forwarded++
	return p.lane(laneKey{broker, name, p.forwarded % forwardLanes}), false, nil
}

// lane finds a lane, or makes it. Called under mu.
func (p *Pool) lane(k laneKey) *lane {
	l := p.lanes[k]
	if l == nil {
		l = &lane{turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		p.lanes[k] = l
	}
	return l
}

// hangUp closes a lane once its request under way is over.
func (p *Pool) hangUp(k laneKey) {
	p.mu.Lock()
	l := p.lanes[k]
	delete(p.lanes, k)
	p.mu.Unlock()
	if l != nil {
		<-l.turn
		l.hangUp()
		l.gone = true // who waits for its turn would open a connection that nobody closes
		l.turn <- struct{}{}
	}
}

// Close closes all lanes, once their requests under way are over: their contexts have to end.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var all []laneKey
	for k := range p.lanes {
		all = append(all, k)
	}
	p.mu.Unlock()
	for _, k := range all {
		p.hangUp(k)
	}
}

func (l *lane) hangUp() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

func (l *lane) exchange(ctx context.Context, c call) error {
	conn := l.conn
	end := context.AfterFunc(ctx, func() { conn.Close() }) // a lane whose request was given up is of no more use
	defer end()
	l.next++
	if _, err := conn.Write(c.request(nil, l.next)); err != nil {
		return err
	}
	if cap(l.buf) > keptBytes {
		l.buf = nil
	}
	var err error
	if l.buf, err = readFrame(conn, l.buf); err != nil {
		return err
	}
	if !end() {
		return ctx.Err()
	}
	body, err := answerBody(l.buf, l.next, c.flexible)
	if err != nil {
		return err
	}
	return c.take(body)
}

// answerBody checks an answer's header: correlation id, and in flexible versions tagged fields.
func answerBody(p []byte, id int32, flexible bool) ([]byte, error) {
	if len(p) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	if got := int32(binary.BigEndian.Uint32(p)); got != id {
		return nil, fmt.Errorf("an answer to request %d came to request %d", got, id)
	}
	p = p[4:]
	if !flexible {
		return p, nil
	}
	tags, n := binary.Uvarint(p)
	if n <= 0 {
		return nil, io.ErrUnexpectedEOF
	}
	p = p[n:]
	for range tags {
		if _, n = binary.Uvarint(p); n <= 0 {
			return nil, io.ErrUnexpectedEOF
		}
		p = p[n:]
		size, n := binary.Uvarint(p)
		if n <= 0 || size > uint64(len(p)-n) {
			return nil, io.ErrUnexpectedEOF
		}
		p = p[n+int(size):]
	}
	return p, nil
}

// readFrame reads one frame without its length into buf, which grows as the bytes come.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return buf, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 0 || n > frameBytesMax {
		return buf, fmt.Errorf("an answer of %d bytes; at most %d are taken", n, frameBytesMax)
	}
	buf = buf[:0]
	for len(buf) < n {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(n, max(2*cap(buf), growBytes)))
			copy(grown, buf)
			buf = grown
		}
		had := len(buf)
		buf = buf[:min(n, cap(buf))]
		if _, err := io.ReadFull(r, buf[had:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}
