// Package zkhostile sends a real `platter coord` what no client should: garbage, silence, floods. Whatever it costs is
// bounded, is written to the log, and nobody else notices. Each test prints the process's resident memory.
package zkhostile

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"platter/tools/proc"
	"platter/tools/zktest"
	"platter/tools/zkwire"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

const (
	patience  = 60 * time.Second
	timeoutMs = 300_000 // what a test takes on a busy machine must not cost a session
	// frameBytesMax is jute.maxbuffer's default.
	frameBytesMax = 1<<20 - 1
)

// victim is a coordinator with one node in it, and a session that must not feel what others do.
type victim struct {
	*zktest.Process
	t       *testing.T
	witness *zkwire.Conn
}

func start(t *testing.T, settings ...string) *victim {
	t.Helper()
	v := &victim{Process: zktest.Coord(t, t.TempDir(), append([]string{fmt.Sprint("maxSessionTimeout=", timeoutMs)}, settings...)...), t: t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log's end:\n%.4000s", tail(v.Log.String()))
		}
	})
	v.witness = v.open(timeoutMs)
	v.create(v.witness, "/kept", []byte("still here"), 0)
	return v
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

func (v *victim) open(timeoutMs int32) *zkwire.Conn {
	v.t.Helper()
	c, err := zkwire.Open(v.Addr, timeoutMs)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { c.NC.Close() })
	return c
}

// raw is a connection without a session.
func (v *victim) raw() *zkwire.Conn {
	v.t.Helper()
	c, err := zkwire.Dial(v.Addr)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { c.NC.Close() })
	return c
}

func (v *victim) call(c *zkwire.Conn, op int32, body zkwire.Body) zkwire.Reply {
	v.t.Helper()
	r, _, err := c.Call(op, body)
	if err != nil {
		v.t.Fatal(err)
	}
	return r
}

func (v *victim) create(c *zkwire.Conn, path string, data []byte, flags int32) {
	v.t.Helper()
	if r := v.call(c, zkwire.OpCreate, zkwire.Create(path, data, flags)); r.Err != 0 {
		v.t.Fatalf("create %.100q: error %d", path, r.Err)
	}
}

// stillServes asks the witness and a new client, and reports the memory, which must be at most limitMB.
func (v *victim) stillServes(what string, limitMB int64) {
	v.t.Helper()
	for _, c := range []*zkwire.Conn{v.witness, v.open(timeoutMs)} {
		r := v.call(c, zkwire.OpGetData, zkwire.PathWatch("/kept", false))
		d := zkwire.Dec{B: r.Body}
		if r.Err != 0 || string(d.Buf()) != "still here" {
			v.t.Fatalf("after %s: error %d", what, r.Err)
		}
		if r := v.call(c, zkwire.OpSetData, zkwire.Set("/kept", []byte("still here"), -1)); r.Err != 0 {
			v.t.Fatalf("after %s: a write fails with %d", what, r.Err)
		}
	}
	mb := v.ResidentBytes() >> 20
	v.t.Logf("%s: %d MB resident", what, mb)
	if mb > limitMB {
		v.t.Errorf("%s: %d MB resident, more than %d", what, mb, limitMB)
	}
}

// closed waits until the server has closed a connection.
func (v *victim) closed(c *zkwire.Conn) {
	v.t.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		if _, err := c.ReadFrame(patience); err != nil {
			if zkwire.TimedOut(err) {
				break
			}
			return
		}
	}
	v.t.Error("the connection stays open")
}

// logged waits until the log has a line with that text.
func (v *victim) logged(text string) {
	v.t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
		if strings.Contains(v.Log.String(), text) {
			return
		}
	}
	v.t.Errorf("the log does not say %q", text)
}

func length(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// TestGarbage: what is no request costs its connection, before the handshake and behind it.
func TestGarbage(t *testing.T) {
	v := start(t)
	for name, b := range map[string][]byte{
		"a negative length":   length(1<<32 - 1),
		"a huge length":       length(1<<31 - 1),
		"a byte too many":     length(frameBytesMax + 1),
		"HTTP":                []byte("GET / HTTP/1.1\r\n\r\n"),
		"TLS":                 {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"an unknown word":     []byte("nope"),
		"a connect too short": append(length(4), 0, 0, 0, 0),
	} {
		first := v.raw()
		first.NC.Write(b)
		v.closed(first)
		if name != "a connect too short" {
			later := v.open(timeoutMs)
			later.NC.Write(b)
			v.closed(later)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c := v.raw()
		b := make([]byte, r.IntN(200))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		c.NC.Write(b)
		c.NC.(*net.TCPConn).CloseWrite()
		v.closed(c)
	}
	v.stillServes("garbage", 100)
	v.logged("connection ended")
}

// TestGarbageRecords: random records under every operation's number. Each is answered or costs its connection.
func TestGarbageRecords(t *testing.T) {
	v := start(t)
	r := rand.New(rand.NewPCG(1, 3))
	for op := int32(-12); op < 110; op++ {
		c := v.open(timeoutMs)
		for range 20 {
			xid := c.NextXid()
			c.NC.Write(zkwire.Request(xid, op, func(e *zkwire.Enc) {
				for range r.IntN(12) {
					e.I32(int32(r.Uint32()) >> (8 * r.IntN(4)))
				}
			}))
		}
		c.NC.(*net.TCPConn).CloseWrite()
		v.closed(c)
	}
	v.stillServes("garbage in records", 120)
}

// TestSilence: peers that say nothing, or stop in the middle of their first frame, or announce much: they are dropped
// when their time is up, and take next to no memory until then.
func TestSilence(t *testing.T) {
	t.Parallel()
	v := start(t)
	const each = 300
	var silent []*zkwire.Conn
	for _, said := range [][]byte{nil, {0, 0}, length(44), append(length(frameBytesMax), 0)} {
		for range each {
			c := v.raw()
			c.NC.Write(said)
			silent = append(silent, c)
		}
	}
	v.stillServes(fmt.Sprintf("%d silent peers", len(silent)), 150)
	for _, c := range silent {
		v.closed(c)
	}
}

// TestSlowHandshake: a peer that sends its first frame a byte at a time has no more time than any other.
func TestSlowHandshake(t *testing.T) {
	t.Parallel()
	v := start(t)
	c := v.raw()
	hello := zkwire.Hello{TimeoutMs: timeoutMs, Password: make([]byte, 16)}.Frame()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, b := range hello {
			if _, err := c.NC.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}()
	v.closed(c)
	c.NC.Close()
	<-ended
	v.stillServes("a slow handshake", 100)
}

// TestHalfOpen: sessions whose clients are silent expire, and leave nothing behind; their connections are closed.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	v := start(t, "tickTime=300")
	const sessions = 1000
	var conns []*zkwire.Conn
	for i := range sessions {
		c := v.open(600)
		_, _ = c.Send(zkwire.OpCreate, zkwire.Create(fmt.Sprint("/half-", i), nil, 1)) // on a busy machine it may be late
		conns = append(conns, c)
	}
	for _, c := range conns {
		v.closed(c)
	}
	left := func() (n int) {
		r := v.call(v.witness, zkwire.OpGetChildren, zkwire.PathWatch("/", false))
		d := zkwire.Dec{B: r.Body}
		for _, name := range d.Strs() {
			if strings.HasPrefix(name, "half-") {
				n++
			}
		}
		return n
	}
	for began := time.Now(); left() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%d nodes outlive their sessions", left())
		}
	}
	v.stillServes(fmt.Sprintf("%d sessions that never pinged", sessions), 120)
}
