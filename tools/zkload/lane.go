package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	ioconn "platter/io/conn"
	"platter/tools/zkwire"
)

// lane drives many sessions on one goroutine. The load shares the processor with the server that it measures: what
// it needs itself, and its threads that wait for each other, would count as the server's.
type lane struct {
	loop *ioconn.Loop
	buf  []byte
}

const laneReadBytes = 64 << 10

func newLane() (*lane, error) {
	loop, err := ioconn.NewLoop()
	if err != nil {
		return nil, err
	}
	go loop.Run(func(int) bool { return true })
	return &lane{loop: loop, buf: make([]byte, laneReadBytes)}, nil
}

// close ends it; its sessions have ended.
func (l *lane) close() { l.loop.End() }

// request makes the next request; false: no more.
type request func() (int32, zkwire.Body, bool)

// rider is one session on a lane. Between two rides it belongs to whoever starts them, during one to the lane.
type rider struct {
	lane *lane
	sock *ioconn.Socket
	xid  int32
	out  []byte // requests to send
	rest []byte // the beginning of a reply that has not come whole
	ride
}

// ride is what a session is to do.
type ride struct {
	next   request // nil: it only listens
	depth  int     // requests in flight
	until  time.Time
	events int                     // that are to come, too
	done   func(*outcomeOf, error) // called once, on the lane

	inFlight []time.Time // when they were sent, the oldest first
	got      outcomeOf
}

// outcomeOf is what one session has seen.
type outcomeOf struct {
	took   []time.Duration
	errors int64
	event  time.Time // the last one
}

func (l *lane) open(addr string) (*rider, error) {
	c, err := zkwire.Open(addr, int32(sessionTime.Milliseconds()))
	if err != nil {
		return nil, err
	}
	r := &rider{lane: l}
	if err = c.NC.SetDeadline(time.Time{}); err == nil {
		r.sock, err = l.loop.Take(c.NC, r.ready)
	}
	if err != nil {
		c.NC.Close()
		return nil, err
	}
	return r, nil
}

// start begins a ride.
func (r *rider) start(x ride) {
	r.ride = x
	r.inFlight = make([]time.Time, 0, x.depth)
	for r.next != nil && len(r.inFlight) < r.depth {
		r.queue(time.Now())
	}
	if len(r.inFlight) == 0 && r.events == 0 {
		r.done(&r.got, nil)
		return
	}
	if _, err := r.sock.Write(r.out); err != nil {
		r.done(&r.got, err)
		return
	}
	r.out = r.out[:0]
	if err := r.sock.Arm(); err != nil {
		r.done(&r.got, err)
	}
}

// queue adds the next request, if there is one in time.
func (r *rider) queue(now time.Time) {
	if !r.until.IsZero() && now.After(r.until) {
		r.next = nil
	}
	if r.next == nil {
		return
	}
	op, body, more := r.next()
	if !more {
		r.next = nil
		return
	}
	r.add(op, body)
	r.inFlight = append(r.inFlight, now)
}

func (r *rider) add(op int32, body zkwire.Body) {
	at := len(r.out)
	r.xid++
	e := zkwire.Enc{B: append(r.out, 0, 0, 0, 0)}
	if op == zkwire.OpPing {
		e.I32(zkwire.XidPing)
	} else {
		e.I32(r.xid)
	}
	e.I32(op)
	if body != nil {
		body(&e)
	}
	r.out = e.B
	binary.BigEndian.PutUint32(r.out[at:], uint32(len(r.out)-at-4))
}

// ready is the lane's: it takes what has come, and sends what follows from it.
func (r *rider) ready(ended bool) {
	for {
		n, err := r.sock.TryRead(r.lane.buf)
		if n == 0 && err == nil {
			return
		}
		over := false
		if err == nil {
			over, err = r.take(r.lane.buf[:n], time.Now())
		}
		if err == nil && len(r.out) > 0 {
			var m int
			if m, err = r.sock.TryWrite(r.out); err == nil && m < len(r.out) {
				err = errors.New("the server does not read")
			}
			r.out = r.out[:0]
		}
		if over || err != nil {
			r.sock.Disarm()
			r.done(&r.got, err)
			return
		}
		if n < len(r.lane.buf) && !ended {
			return
		}
	}
}

// take takes the replies from b, what came before them included.
func (r *rider) take(b []byte, now time.Time) (over bool, err error) {
	if len(r.rest) > 0 {
		b = append(r.rest, b...)
	}
	for len(b) >= 4 && len(b)-4 >= int(binary.BigEndian.Uint32(b)) {
		frame := b[4 : 4+binary.BigEndian.Uint32(b)]
		b = b[4+len(frame):]
		if err := r.reply(frame, now); err != nil {
			return false, err
		}
	}
	r.rest = append(r.rest[:0], b...)
	return len(r.inFlight) == 0 && r.events <= 0, nil
}

func (r *rider) reply(frame []byte, now time.Time) error {
	d := zkwire.Dec{B: frame}
	xid, _, code := d.I32(), d.I64(), d.I32()
	switch {
	case d.Bad:
		return errors.New("a reply without a whole header")
	case xid == zkwire.XidPing:
	case xid == zkwire.XidEvent:
		r.events--
		r.got.event = now
	case len(r.inFlight) == 0:
		return fmt.Errorf("a reply to nothing, xid %d", xid)
	default:
		r.got.took = append(r.got.took, now.Sub(r.inFlight[0]))
		r.inFlight = append(r.inFlight[:0], r.inFlight[1:]...)
		if code != 0 {
			r.got.errors++
		}
		r.queue(now)
	}
	return nil
}

// ping keeps an idle session alive. The answer is read by the next ride.
func (r *rider) ping() error {
	r.add(zkwire.OpPing, nil)
	_, err := r.sock.Write(r.out)
	r.out = r.out[:0]
	return err
}

// close ends the session.
func (r *rider) close() {
	r.add(zkwire.OpClose, nil)
	if _, err := r.sock.Write(r.out); err == nil {
		late := time.AfterFunc(sessionTime, func() { r.sock.Close() })
		for frame := []byte(nil); err == nil && (len(frame) < 4 || int32(binary.BigEndian.Uint32(frame)) != r.xid); {
			frame, err = zkwire.ReadFrame(r.sock)
		}
		late.Stop()
	}
	r.drop()
}

// drop ends the connection alone.
func (r *rider) drop() {
	r.sock.Close()
	r.sock.Free()
}
