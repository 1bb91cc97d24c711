package zkclient

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platter/coord/zk"
)

const (
	// replyBytesMax bounds a reply: servers send long lists of children beyond jute.maxbuffer.
	replyBytesMax = 64 << 20
	// replyStepBytes is how much is taken at a time for a reply, on the word of its length.
	replyStepBytes = 1 << 20
)

// call is one request on its way.
type call struct {
	xid   int32
	reply func(zk.ReplyHeader, *zk.Decoder) // on the reader's goroutine; nil for an error
	watch string                            // as of its request
	done  chan error                        // gets the outcome; has room for it
}

// link is one connection with its requests in flight.
type link struct {
	addr    string // the server's
	refused error  // why the session is of no use on it; the reader's
	nc      Conn
	r       *bufio.Reader
	began   time.Time
	heard   atomic.Int64  // nanoseconds since began, which no change of the wall clock moves
	some    chan struct{} // has room for one: there are frames to send
	closed  chan struct{}

	mu    sync.Mutex
	calls []*call // in order of sending
	out   []byte  // frames to send
	spare []byte
	dead  bool
}

func newLink(nc Conn) *link {
	l := &link{nc: nc, some: make(chan struct{}, 1), closed: make(chan struct{}), began: time.Now()}
	l.r = bufio.NewReaderSize(hearing{l}, 32<<10)
	return l
}

// hearing notes when the peer was heard: a long reply on a slow line is no silence.
type hearing struct{ l *link }

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.l.nc.Read(b)
	if n > 0 {
		h.l.heard.Store(int64(time.Since(h.l.began)))
	}
	return n, err
}

// add queues a frame, and the call (nil: none) that its reply answers. It does not wait for the peer to take it.
func (l *link) add(k *call, frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		if k != nil {
			k.done <- ErrConnectionLoss
		}
		return
	}
	l.out = append(l.out, frame...)
	if k != nil {
		l.calls = append(l.calls, k)
	}
	select {
	case l.some <- struct{}{}:
	default:
	}
}

// send writes what is queued until the link is closed. A peer that takes nothing keeps this goroutine waiting, and
// nobody else: callers heed their contexts, and ping hears the silence.
func (l *link) send() {
	for {
		select {
		case <-l.closed:
			return
		case <-l.some:
		}
		buf := l.take()
		if len(buf) == 0 { // what this wake-up is for went with the last
			continue
		}
		if _, err := l.nc.Write(buf); err != nil {
			l.nc.Close() // the reader sees it, and fails the calls
			return
		}
		l.mu.Lock()
		l.spare = buf[:0]
		l.mu.Unlock()
	}
}

// take gives what is queued, the caller's until it is the spare again.
func (l *link) take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	buf := l.out
	l.out, l.spare = l.spare[:0], nil
	return buf
}

// answered takes the oldest call, which xid must answer: replies come in order. Only authentication is
// answered out of turn.
func (l *link) answered(xid int32) (*call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if xid == zk.XidAuth {
		if i := slices.IndexFunc(l.calls, func(k *call) bool { return k.xid == xid }); i > 0 {
			k := l.calls[i]
			l.calls = slices.Delete(l.calls, i, i+1)
			return k, nil
		}
	}
	if len(l.calls) == 0 || l.calls[0].xid != xid {
		return nil, fmt.Errorf("reply with xid %d, which nobody waits for", xid)
	}
	k := l.calls[0]
	l.calls[0] = nil
	l.calls = l.calls[1:]
	return k, nil
}

// fail closes the connection; every call in flight ends with err.
func (l *link) fail(err error) {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return
	}
	l.dead = true
	calls := l.calls
	l.calls, l.out = nil, nil
	l.mu.Unlock()
	close(l.closed)
	l.nc.Close()
	for _, k := range calls {
		k.done <- err
	}
}

// ping keeps the session alive until the link is closed, and closes it when the server is silent for
// two thirds of the timeout.
func (l *link) ping(timeout time.Duration) {
	tick := time.NewTicker(timeout / 3)
	defer tick.Stop()
	frame := zk.AppendFrame(nil, zk.RequestHeader{Xid: zk.XidPing, Op: zk.OpPing}.Append)
	for {
		select {
		case <-l.closed:
			return
		case <-tick.C:
			if l.silence() > timeout*5/8 {
				l.nc.Close()
				return
			}
			l.add(nil, frame)
		}
	}
}

// silence is how long ago the server was last heard of.
func (l *link) silence() time.Duration { return time.Since(l.began) - time.Duration(l.heard.Load()) }

// read gives the next frame's body, the caller's to keep.
func (l *link) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(l.r, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 0 || n > replyBytesMax {
		return nil, fmt.Errorf("reply of %d bytes: not within 0 to %d", n, replyBytesMax)
	}
	body := make([]byte, min(n, replyStepBytes))
	if _, err := io.ReadFull(l.r, body); err != nil {
		return nil, unexpected(err)
	}
	for len(body) < n {
		at := len(body)
		body = append(body, make([]byte, min(n-at, replyStepBytes))...)
		if _, err := io.ReadFull(l.r, body[at:]); err != nil {
			return nil, unexpected(err)
		}
	}
	return body, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
