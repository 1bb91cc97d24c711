package zkcli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"platter/coord/zk"
	"platter/coord/zkclient"
	"platter/coord/zkserver"
	"platter/io/clock"
	"platter/io/memdisk"
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func coordinator(t *testing.T) (addr string) {
	s, err := zkserver.Start(t.Context(), zkserver.Config{FS: memdisk.New(memdisk.Options{}), Clock: clock.Real{}, Dir: "/zk"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Addr().String()
}

// firstWrite stands still in the first write until it is let go.
type firstWrite struct {
	bytes.Buffer
	begun, goOn chan struct{}
}

func (w *firstWrite) Write(b []byte) (int, error) {
	if w.begun != nil {
		close(w.begun)
		w.begun = nil
		<-w.goOn
	}
	return w.Buffer.Write(b)
}

// TestWatchEndsOnBusyNode: a watch that has printed what it was to print ends, and its tool, however many events more
// have come.
func TestWatchEndsOnBusyNode(t *testing.T) {
	addr, ctx := coordinator(t), within(t)
	begun := make(chan struct{})
	out := &firstWrite{begun: begun, goOn: make(chan struct{})}
	tool, err := Open(ctx, Options{Connect: addr, Timeout: time.Hour, Session: time.Minute, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	other, err := zkclient.Connect(ctx, zkclient.Config{Servers: []string{addr}, SessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Drop()
	if _, err := other.Create(ctx, "/n", nil, zkclient.Persistent); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := tool.Watch(ctx, "/n", false, 1)
		tool.Close()
		ended <- err
	}()
	for printing := false; !printing; { // until the watch is there
		if _, err := other.Set(ctx, "/n", nil, -1); err != nil {
			t.Fatal(err)
		}
		select {
		case <-begun:
			printing = true
		case <-time.After(time.Millisecond):
		}
	}
	sets := slices.Repeat([]zkclient.Op{zkclient.SetOp("/n", nil, -1)}, 2*eventsMax)
	if _, err := other.Multi(ctx, sets...); err != nil {
		t.Fatal(err)
	}
	close(out.goOn)
	select {
	case err := <-ended:
		if err != nil || out.String() != "NodeDataChanged /n\n" {
			t.Errorf("%v; printed %q", err, out.String())
		}
	case <-ctx.Done():
		t.Fatal("the watch does not end")
	}
}

// TestWordToEachServer: one that is down keeps no other from being asked.
func TestWordToEachServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down := ln.Addr().String()
	ln.Close()
	var out bytes.Buffer
	err = Word(within(t), Options{Connect: down + "," + coordinator(t), Timeout: time.Minute, Out: &out}, "srvr")
	if err == nil || !strings.Contains(err.Error(), down) {
		t.Error("the one that is down is not named:", err)
	}
	if !strings.Contains(out.String(), "Mode: standalone") {
		t.Errorf("printed %q", out.String())
	}
}

// TestDumpCut: a dump that lacks a node since the connection was lost has failed.
func TestDumpCut(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go listOnly(nc)
		}
	}()
	ctx := within(t)
	tool, err := Open(ctx, Options{Connect: ln.Addr().String(), Timeout: time.Minute, Session: time.Minute, Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	if err := tool.Dump(ctx, "/"); !errors.Is(err, zkclient.ErrConnectionLoss) {
		t.Error("dump:", err)
	}
}

// listOnly is a server's side of a connection on which nodes have no children, and which ends when data are asked for.
func listOnly(nc net.Conn) {
	defer nc.Close()
	for n := 0; ; n++ {
		var head [4]byte
		if _, err := io.ReadFull(nc, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(nc, body); err != nil {
			return
		}
		d := zk.NewDecoder(body)
		var q zk.RequestHeader
		q.Decode(&d)
		switch {
		case n == 0:
			answer := zk.ConnectResponse{TimeoutMs: 60_000, SessionID: 7, Password: make([]byte, 16)}
			nc.Write(zk.AppendFrame(nil, answer.Append))
		case q.Op == zk.OpGetData:
			return
		default:
			nc.Write(zk.AppendFrame(nil, func(b []byte) []byte {
				b = zk.ReplyHeader{Xid: q.Xid, Zxid: 1}.Append(b)
				return (&zk.Stat{}).Append(append(b, 0, 0, 0, 0)) // no names
			}))
		}
	}
}
