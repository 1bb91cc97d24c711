package zkwire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// Hello is a connect request. RO: -1 leaves the read-only flag out, as clients before 3.4 do.
type Hello struct {
	RO        int
	LastZxid  int64
	TimeoutMs int32
	SessionID int64
	Password  []byte
}

// Frame is the whole frame.
func (h Hello) Frame() []byte {
	e := Enc{B: make([]byte, 4, 64)}
	e.I32(0)
	e.I64(h.LastZxid)
	e.I32(h.TimeoutMs)
	e.I64(h.SessionID)
	e.Buf(h.Password)
	if h.RO >= 0 {
		e.Bool(h.RO == 1)
	}
	return sealed(e.B)
}

// Reply is an answer, or an event.
type Reply struct {
	Xid  int32
	Zxid int64
	Err  int32
	Body []byte
	At   time.Time // when it was read
}

// Event is what a watch tells.
type Event struct {
	Type, State int32
	Path        string
	Zxid        int64 // of the header: -1, or real since 3.9
	Err         int32
	At          time.Time
}

// Event decodes a reply whose xid is XidEvent.
func (r *Reply) Event() Event {
	d := Dec{B: r.Body}
	return Event{Type: d.I32(), State: d.I32(), Path: d.Str(), Zxid: r.Zxid, Err: r.Err, At: r.At}
}

// ParseReply takes a frame's body apart.
func ParseReply(frame []byte) (Reply, error) {
	d := Dec{B: frame}
	r := Reply{Xid: d.I32(), Zxid: d.I64(), Err: d.I32(), At: time.Now()}
	if d.Bad {
		return r, errors.New("a reply without a whole header")
	}
	r.Body = d.B
	return r, nil
}

// Conn is one connection.
type Conn struct {
	NC        net.Conn
	SessionID int64
	Password  []byte
	TimeoutMs int32
	HelloLen  int // bytes of the connect response; -1: closed without one
	xid       int32
	r         *bufio.Reader
}

// Dial connects, and sends nothing.
func Dial(addr string) (*Conn, error) {
	nc, err := net.DialTimeout("tcp", addr, 60*time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{NC: nc, r: bufio.NewReaderSize(nc, 16<<10)}, nil
}

// Connect dials and opens or re-attaches a session. A server that closes without an answer is no error:
// HelloLen is -1 then.
func Connect(addr string, h Hello) (*Conn, error) {
	c, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	if err := c.Greet(h); err != nil {
		c.NC.Close()
		return nil, err
	}
	return c, nil
}

// Greet sends the connect request and reads the answer.
func (c *Conn) Greet(h Hello) error { return c.greetWithin(h, 60*time.Second) }

func (c *Conn) greetWithin(h Hello, limit time.Duration) error {
	if _, err := c.NC.Write(h.Frame()); err != nil {
		return err
	}
	p, err := c.ReadFrame(limit)
	if Closed(err) {
		c.HelloLen = -1
		return nil
	}
	if err != nil {
		return err
	}
	d := Dec{B: p}
	d.I32()
	c.HelloLen, c.TimeoutMs, c.SessionID = len(p), d.I32(), d.I64()
	c.Password = d.Buf()
	return nil
}

// Open opens a session of that timeout, which must be granted.
func Open(addr string, timeoutMs int32) (*Conn, error) {
	c, err := Connect(addr, Hello{TimeoutMs: timeoutMs, Password: make([]byte, 16)})
	if err != nil {
		return nil, err
	}
	if c.SessionID == 0 {
		c.NC.Close()
		return nil, errors.New("no session was given")
	}
	return c, nil
}

// Closed reports whether an error of a read means that the server has closed.
func Closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// TimedOut reports whether nothing came in time.
func TimedOut(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// ReadFrame reads one frame within limit.
func (c *Conn) ReadFrame(limit time.Duration) ([]byte, error) {
	if err := c.NC.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	return ReadFrame(c.r)
}

// Recv reads one reply or event within limit.
func (c *Conn) Recv(limit time.Duration) (Reply, error) {
	p, err := c.ReadFrame(limit)
	if err != nil {
		return Reply{}, err
	}
	return ParseReply(p)
}

// NextXid is the xid of the next request.
func (c *Conn) NextXid() int32 {
	c.xid++
	return c.xid
}

// Send sends one request and returns its xid.
func (c *Conn) Send(op int32, body Body) (int32, error) {
	xid := c.NextXid()
	_, err := c.NC.Write(Request(xid, op, body))
	return xid, err
}

// Call sends one request and reads until its reply; what came before it are events.
func (c *Conn) Call(op int32, body Body) (Reply, []Event, error) {
	return c.CallXid(c.NextXid(), op, body)
}

// callTime is how long a reply may take.
const callTime = 60 * time.Second

// CallXid is Call with an xid of the caller's.
func (c *Conn) CallXid(xid, op int32, body Body) (Reply, []Event, error) {
	return c.CallWithin(callTime, xid, op, body)
}

// CallWithin is CallXid with a limit for each frame.
func (c *Conn) CallWithin(limit time.Duration, xid, op int32, body Body) (Reply, []Event, error) {
	if _, err := c.NC.Write(Request(xid, op, body)); err != nil {
		return Reply{}, nil, err
	}
	var events []Event
	for {
		r, err := c.Recv(limit)
		if err != nil {
			return Reply{}, events, err
		}
		if r.Xid != XidEvent {
			return r, events, nil
		}
		events = append(events, r.Event())
	}
}

// Word sends a four-letter word on a connection of its own and returns the whole answer.
func Word(addr, word string) (string, error) {
	c, err := Dial(addr)
	if err != nil {
		return "", err
	}
	defer c.NC.Close()
	if _, err := c.NC.Write([]byte(word)); err != nil {
		return "", err
	}
	if err := c.NC.SetReadDeadline(time.Now().Add(60 * time.Second)); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c.r)
	if Closed(err) {
		err = nil
	}
	return string(b), err
}
