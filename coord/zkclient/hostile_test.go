package zkclient

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"platter/coord/zk"
)

// fake is a server that answers the handshake, and the first request with given bytes; from the second
// connection on it behaves, as far as exists goes.
type fake struct {
	first []byte
	conns int
}

func (f *fake) dial(context.Context, string) (Conn, error) {
	ours, theirs := net.Pipe()
	f.conns++
	go f.serve(theirs, f.conns == 1)
	return ours, nil
}

func (f *fake) serve(nc net.Conn, hostile bool) {
	defer nc.Close()
	r := bufio.NewReader(nc)
	for n := 0; ; n++ {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		switch {
		case n == 0:
			answer := zk.ConnectResponse{TimeoutMs: 10_000, SessionID: 7, Password: make([]byte, 16)}
			nc.Write(zk.AppendFrame(nil, answer.Append))
		case hostile:
			nc.Write(f.first)
			if len(f.first) < 4 {
				return
			}
		default:
			d := zk.NewDecoder(body)
			var q zk.RequestHeader
			q.Decode(&d)
			nc.Write(zk.AppendFrame(nil, func(b []byte) []byte {
				st := zk.Stat{Version: 5}
				return st.Append(zk.ReplyHeader{Xid: q.Xid, Zxid: 1}.Append(b))
			}))
		}
	}
}

// TestHostileServer: nonsense costs the connection, and the client goes on with the next one.
func TestHostileServer(t *testing.T) {
	framed := func(b ...byte) []byte { return zk.AppendFrame(nil, func(f []byte) []byte { return append(f, b...) }) }
	reply := func(xid int32, record ...byte) []byte {
		return framed(append(zk.ReplyHeader{Xid: xid, Zxid: 1}.Append(nil), record...)...)
	}
	for name, first := range map[string][]byte{
		"closes":          {0},
		"negative length": {0xff, 0xff, 0xff, 0xff},
		"huge length":     {0x7f, 0xff, 0xff, 0xff},
		"no header":       framed(1, 2, 3),
		"unknown xid":     reply(99),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, f := within(t), &fake{first: first}
			c, err := Connect(ctx, Config{Servers: []string{"fake"}, Dial: f.dial})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Drop()
			_, err = c.Exists(ctx, "/a", nil)
			wantErr(t, err, ErrConnectionLoss)
			if st := must(c.Exists(ctx, "/a", nil))(t); st.Version != 5 {
				t.Fatal(st)
			}
		})
	}
	t.Run("short record", func(t *testing.T) {
		ctx, f := within(t), &fake{first: append(reply(zk.XidEvent, 1, 2), reply(1, 1, 2, 3)...)}
		c, err := Connect(ctx, Config{Servers: []string{"fake"}, Dial: f.dial})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Drop()
		_, err = c.Exists(ctx, "/a", nil)
		wantErr(t, err, zk.ErrMalformed)
	})
	t.Run("handshake", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		dial := func(context.Context, string) (Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				io.CopyN(io.Discard, theirs, 49)
				theirs.Write(framed(1, 2, 3))
			}()
			return ours, nil
		}
		if _, err := Connect(ctx, Config{Servers: []string{"fake"}, Dial: dial}); err == nil {
			t.Fatal("connected")
		}
	})
}
