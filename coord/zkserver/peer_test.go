package zkserver

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"platter/coord/zk"
	"platter/io/buf"
	ioconn "platter/io/conn"
)

// peer is a raw client: it sees frames, and nothing is done for it.
type peer struct {
	nc       net.Conn
	frames   *ioconn.FrameReader
	id       int64
	password []byte
	xid      int32
	ops      map[int32]zk.Op // by xid, to know what a reply holds
}

func dialPeer(t testing.TB, addr net.Addr) *peer {
	t.Helper()
	return dialAddr(t, addr.String())
}

func dialAddr(t testing.TB, addr string) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(60 * time.Second))
	frames := ioconn.NewFrameReader(context.Background(), nc, ioconn.FrameConfig{Pool: buf.New(8 << 20), BytesMax: zk.MaxFrameBytes})
	return &peer{nc: nc, frames: frames, ops: map[int32]zk.Op{}}
}

// read gives the next frame.
func (p *peer) read() ([]byte, error) {
	f, err := p.frames.Next()
	if err != nil {
		return nil, err
	}
	defer f.Release()
	return bytes.Clone(f.B), nil
}

// connect does the handshake; an id of 0 asks for a new session.
func (p *peer) connect(q zk.ConnectRequest) (zk.ConnectResponse, error) {
	p.nc.Write(zk.AppendFrame(nil, q.Append))
	b, err := p.read()
	if err != nil {
		return zk.ConnectResponse{}, err
	}
	d := zk.NewDecoder(b)
	var r zk.ConnectResponse
	r.Decode(&d)
	p.id, p.password = r.SessionID, bytes.Clone(r.Password)
	return r, d.Err()
}

// open is a peer with a new session.
func open(t testing.TB, s *Server, timeoutMs int32) *peer {
	t.Helper()
	p := dialPeer(t, s.Addr())
	if r, err := p.connect(zk.ConnectRequest{TimeoutMs: timeoutMs, HasReadOnly: true}); err != nil || r.SessionID == 0 {
		t.Fatal(r, err)
	}
	return p
}

// frame makes a request; the xid is the next.
func (p *peer) frame(op zk.Op, record []byte) []byte {
	p.xid++
	xid := p.xid
	switch op {
	case zk.OpPing:
		xid = zk.XidPing
	case zk.OpSetWatches, zk.OpSetWatches2:
		xid = zk.XidSetWatches
	case zk.OpAuth:
		xid = zk.XidAuth
	}
	p.ops[xid] = op
	return zk.AppendFrame(nil, func(b []byte) []byte {
		return append(zk.RequestHeader{Xid: xid, Op: op}.Append(b), record...)
	})
}

// call sends one request and gives its reply; events on the way are dropped.
func (p *peer) call(t testing.TB, op zk.Op, record []byte) (zk.ReplyHeader, *zk.Decoder) {
	t.Helper()
	p.nc.Write(p.frame(op, record))
	for {
		h, d := p.next(t)
		if h.Xid != zk.XidEvent {
			return h, d
		}
	}
}

func (p *peer) next(t testing.TB) (zk.ReplyHeader, *zk.Decoder) {
	t.Helper()
	b, err := p.read()
	if err != nil {
		t.Fatal(err)
	}
	d := zk.NewDecoder(b)
	var h zk.ReplyHeader
	h.Decode(&d)
	return h, &d
}

func createBody(path string, data []byte, flags int32) []byte {
	q := zk.CreateRequest{Path: path, Data: data, ACL: zk.WorldAnyone(), Flags: flags}
	return q.Append(nil, zk.OpCreate)
}

func setBody(path string, data []byte, version int32) []byte {
	q := zk.SetDataRequest{Path: path, Data: data, Version: version}
	return q.Append(nil)
}

func pathBody(path string, watch bool) []byte {
	return zk.PathWatchRequest{Path: path, Watch: watch}.Append(nil)
}
