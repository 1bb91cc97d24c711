package zkserver

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"platter/coord/tree"
	"platter/coord/zk"
	"platter/io/clock"
	"platter/io/memdisk"
)

// script runs a transcript: peers by name, virtual time, a disk in memory.
type script struct {
	disk  *memdisk.FS
	clock *clock.Virtual
	skew  *clock.Skewed
	s     *Server
	peers map[string]*peer
	base  int64 // what zxids are printed relative to

	pollers int
}

// TestTranscripts: script in, frames out.
//
//	connect NAME [timeout=MS] [as=NAME [password=wrong]] [old] [zxid=N]
//	send NAME               requests, pipelined, one a line; prints all frames up to the last reply
//	events NAME             what has come without being asked for
//	cut NAME                the connection goes, without a word
//	gone NAME               waits for the server to close the connection
//	word NAME               a four-letter word
//	advance DURATION, suspend DURATION
//	restart, kill           of the server; kill is the process's death
func TestTranscripts(t *testing.T) {
	for pollers := range 2 {
		t.Run(fmt.Sprint("pollers=", pollers), func(t *testing.T) { transcripts(t, pollers) })
	}
}

func transcripts(t *testing.T, pollers int) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		x := &script{
			pollers: pollers,
			disk:    memdisk.New(memdisk.Options{}),
			clock:   clock.NewVirtual(time.UnixMilli(1_000_000)),
			peers:   map[string]*peer{},
		}
		x.skew = clock.NewSkewed(x.clock, 0, 1)
		x.start(t)
		t.Cleanup(func() { x.s.Close() })
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return x.run(t, d) })
	})
}

func (x *script) start(t *testing.T) {
	s, err := Start(context.Background(), Config{
		FS: x.disk, Clock: x.skew, Dir: "/zk", TickMs: 1000, FourLetterWords: []string{"ruok"}, Pollers: x.pollers, ExtendedTypes: true, ContainerNeverUsed: 10 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.s = s
}

func (x *script) run(t *testing.T, d *datadriven.TestData) string {
	arg := func(i int) string { return d.CmdArgs[i].Key }
	switch d.Cmd {
	case "connect":
		return x.connect(t, d)
	case "send":
		return x.send(t, x.peers[arg(0)], d.Input)
	case "events":
		return x.send(t, x.peers[arg(0)], "ping")
	case "cut":
		x.peers[arg(0)].nc.Close()
	case "gone":
		b, err := io.ReadAll(x.peers[arg(0)].nc)
		return fmt.Sprintf("%d bytes, then closed (%v)\n", len(b), errors.Is(err, nil) || strings.Contains(err.Error(), "reset"))
	case "word":
		p := dialPeer(t, x.s.Addr())
		p.nc.Write([]byte(arg(0)))
		b, _ := io.ReadAll(p.nc)
		return regexp.MustCompile("version: .*|Sent: .*|Received: .*|Connections: .*").ReplaceAllString(string(b), "(varies)")
	case "advance", "suspend":
		by, err := time.ParseDuration(arg(0))
		if err != nil {
			t.Fatal(err)
		}
		if d.Cmd == "suspend" {
			x.skew.Jump(by)
			by = time.Second
		}
		x.clock.Advance(by)
		x.settle(t)
	case "restart":
		x.s.Close()
		x.start(t)
	case "kill":
		x.disk = x.disk.KillClone()
		x.s.Close()
		x.start(t)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return ""
}

// settle waits until the committer has done what was proposed before.
func (x *script) settle(t *testing.T) {
	done := make(chan struct{})
	x.s.queue.add(&proposal{
		entry: tree.Entry{Op: zk.OpCloseSession},
		done:  func(tree.Result) { close(done) },
	}, false)
	<-done
}

func (x *script) connect(t *testing.T, d *datadriven.TestData) string {
	p := dialPeer(t, x.s.Addr())
	q := zk.ConnectRequest{TimeoutMs: 5000, HasReadOnly: true, Password: make([]byte, 16)}
	for _, a := range d.CmdArgs[1:] {
		switch a.Key {
		case "timeout":
			q.TimeoutMs = int32(number(a.Vals[0]))
		case "zxid":
			q.LastZxidSeen = number(a.Vals[0])
		case "as":
			q.SessionID, q.Password = x.peers[a.Vals[0]].id, x.peers[a.Vals[0]].password
		case "password":
			q.Password = []byte(a.Vals[0])
		case "old":
			q.HasReadOnly = false
		}
	}
	r, err := p.connect(q)
	if err != nil {
		return "closed without a reply\n"
	}
	session := "new session"
	switch {
	case r.SessionID == 0:
		session = "no session"
	case q.SessionID != 0:
		session = fmt.Sprintf("same session %v, same password %v", r.SessionID == q.SessionID, bytes.Equal(r.Password, q.Password))
	}
	x.peers[d.CmdArgs[0].Key] = p
	return fmt.Sprintf("timeout %d, %s, %d bytes\n", r.TimeoutMs, session, len(r.Append(nil)))
}

func (x *script) send(t *testing.T, p *peer, input string) string {
	var out []byte
	want := 0
	for line := range strings.Lines(input) {
		f := strings.Fields(line)
		out = append(out, p.frame(x.request(t, f))...)
		want++
	}
	p.nc.Write(out)
	var text strings.Builder
	for want > 0 {
		b, err := p.read()
		if err != nil {
			fmt.Fprintln(&text, "closed")
			break
		}
		line, reply := x.describe(p, b)
		if text.WriteString(line); reply {
			want--
		}
	}
	return text.String()
}

// request makes the operation and record of one line.
func (x *script) request(t *testing.T, f []string) (zk.Op, []byte) {
	switch f[0] {
	case "create":
		return zk.OpCreate, createBody(f[1], []byte(f[2]), int32(number(f[3])))
	case "create2":
		return zk.OpCreate2, createBody(f[1], []byte(f[2]), int32(number(f[3])))
	case "delete", "check":
		op := map[string]zk.Op{"delete": zk.OpDelete, "check": zk.OpCheck}[f[0]]
		return op, zk.DeleteRequest{Path: f[1], Version: int32(number(f[2]))}.Append(nil)
	case "set":
		return zk.OpSetData, setBody(f[1], []byte(f[2]), int32(number(f[3])))
	case "exists", "get", "ls", "ls2":
		op := map[string]zk.Op{"exists": zk.OpExists, "get": zk.OpGetData, "ls": zk.OpGetChildren, "ls2": zk.OpGetChildren2}[f[0]]
		return op, pathBody(f[1], len(f) > 2)
	case "container", "ttl", "createas":
		return creation(f)
	case "acl":
		return zk.OpGetACL, zk.GetACLRequest{Path: f[1]}.Append(nil)
	case "setacl":
		return zk.OpSetACL, zk.SetACLRequest{Path: f[1], ACL: acls(f[2:]), Version: -1}.Append(nil)
	case "auth":
		return zk.OpAuth, zk.AuthRequest{Scheme: f[1], Auth: []byte(f[2])}.Append(nil)
	case "whoami":
		return zk.OpWhoAmI, nil
	case "allnumber", "ephemerals":
		op := map[string]zk.Op{"allnumber": zk.OpGetAllChildrenNumber, "ephemerals": zk.OpGetEphemerals}[f[0]]
		return op, zk.PathRecord{Path: f[1]}.Append(nil)
	case "addwatch":
		return zk.OpAddWatch, zk.AddWatchRequest{Path: f[1], Mode: zk.WatchMode(number(f[2]))}.Append(nil)
	case "removewatches", "checkwatches":
		op := map[string]zk.Op{"removewatches": zk.OpRemoveWatches, "checkwatches": zk.OpCheckWatches}[f[0]]
		return op, zk.WatchesRequest{Path: f[1], Type: zk.WatcherType(number(f[2]))}.Append(nil)
	case "multiread":
		return zk.OpMultiRead, multiRead(strings.Split(strings.Join(f[1:], " "), ";"))
	case "sync":
		return zk.OpSync, zk.PathRecord{Path: f[1]}.Append(nil)
	case "ping":
		return zk.OpPing, nil
	case "close":
		return zk.OpCloseSession, nil
	case "watches", "watches2":
		op := map[string]zk.Op{"watches": zk.OpSetWatches, "watches2": zk.OpSetWatches2}[f[0]]
		return op, setWatches(f[1:]).Append(nil, op)
	case "multi":
		return zk.OpMulti, x.multi(t, strings.Split(strings.Join(f[1:], " "), ";"))
	case "hex":
		body, err := hex.DecodeString(strings.Join(f[2:], ""))
		if err != nil {
			t.Fatal(err)
		}
		return zk.Op(number(f[1])), body
	case "raw":
		return zk.Op(number(f[1])), []byte(strings.Join(f[2:], " "))
	}
	t.Fatalf("unknown request %q", f[0])
	return 0, nil
}

// creation is "container PATH FLAGS", "ttl PATH FLAGS MS" or "createas PATH FLAGS ACL...".
func creation(f []string) (zk.Op, []byte) {
	q := zk.CreateRequest{Path: f[1], Data: []byte("c"), ACL: zk.WorldAnyone(), Flags: int32(number(f[2]))}
	op := zk.OpCreateContainer
	switch f[0] {
	case "ttl":
		op, q.TTLMs = zk.OpCreateTTL, number(f[3])
	case "createas":
		op, q.ACL = zk.OpCreate, acls(f[3:])
	}
	return op, q.Append(nil, op)
}

// acls are triples of permissions, scheme and identity ("-": empty).
func acls(f []string) (list []zk.ACL) {
	for ; len(f) >= 3; f = f[3:] {
		id := strings.TrimPrefix(f[2], "-")
		list = append(list, zk.ACL{Perms: int32(number(f[0])), ID: zk.ID{Scheme: f[1], ID: id}})
	}
	return list
}

// setWatches is a zxid, then KIND:PATH each.
func setWatches(f []string) *zk.SetWatches {
	q := &zk.SetWatches{RelativeZxid: number(f[0])}
	lists := map[string]*[]string{
		"data": &q.Data, "exist": &q.Exist, "child": &q.Child, "persistent": &q.Persistent, "recursive": &q.PersistentRecursive,
	}
	for _, w := range f[1:] {
		kind, path, _ := strings.Cut(w, ":")
		*lists[kind] = append(*lists[kind], path)
	}
	return q
}

// multiRead are "get PATH" and "ls PATH", with "w" for a watch.
func multiRead(lines []string) []byte {
	var q zk.MultiReadRequest
	for _, line := range lines {
		f := strings.Fields(line)
		op := map[string]zk.Op{"get": zk.OpGetData, "ls": zk.OpGetChildren}[f[0]]
		q.Ops = append(q.Ops, zk.MultiReadOp{Op: op, PathWatchRequest: zk.PathWatchRequest{Path: f[1], Watch: len(f) > 2}})
	}
	return q.Append(nil)
}

func (x *script) multi(t *testing.T, lines []string) []byte {
	var q zk.MultiRequest
	for _, line := range lines {
		op, record := x.request(t, strings.Fields(line))
		d := zk.NewDecoder(record)
		o := zk.MultiOp{Op: op}
		switch op {
		case zk.OpCreate, zk.OpCreate2, zk.OpCreateContainer, zk.OpCreateTTL:
			o.Create.Decode(&d, op)
		case zk.OpSetData:
			o.Set.Decode(&d)
		default:
			o.Target.Decode(&d)
		}
		q.Ops = append(q.Ops, o)
	}
	return q.Append(nil)
}

// describe prints a frame, and reports whether it is a reply.
func (x *script) describe(p *peer, frame []byte) (string, bool) {
	d := zk.NewDecoder(frame)
	var h zk.ReplyHeader
	h.Decode(&d)
	if h.Xid == zk.XidEvent {
		var e zk.WatcherEvent
		e.Decode(&d)
		return fmt.Sprintf("event %d %s (state %d, zxid %d)\n", e.Type, e.Path, e.State, h.Zxid), false
	}
	var out strings.Builder
	zxid := h.Zxid - x.base
	if h.Zxid <= 0 { // none
		zxid = h.Zxid
	}
	fmt.Fprintf(&out, "%d: zxid %d, %v", h.Xid, zxid, h.Err)
	if h.Err == zk.OK {
		x.describeRecord(&out, p.ops[h.Xid], &d)
	}
	if n := len(d.Rest()); n > 0 || d.Err() != nil {
		fmt.Fprintf(&out, " (%d bytes left, %v)", n, d.Err())
	}
	return out.String() + "\n", true
}

func (x *script) describeRecord(out *strings.Builder, op zk.Op, d *zk.Decoder) {
	stat := func(s zk.Stat) {
		owner := "nobody"
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(x.peers))) {
			if id := x.peers[name].id; id != 0 && id == s.EphemeralOwner {
				owner = name
			}
		}
		fmt.Fprintf(out, " {c %d m %d p %d, v %d cv %d av %d, owner %s, %d bytes, %d children}",
			s.Czxid-x.base, s.Mzxid-x.base, s.Pzxid-x.base, s.Version, s.Cversion, s.Aversion, owner, s.DataLength, s.NumChildren)
	}
	switch op {
	case zk.OpCreate, zk.OpCreate2, zk.OpCreateContainer, zk.OpCreateTTL:
		var r zk.CreateResponse
		r.Decode(d, op)
		fmt.Fprint(out, " ", r.Path)
		if zk.CreateHasStat(op) {
			stat(r.Stat)
		}
	case zk.OpExists, zk.OpSetData, zk.OpSetACL:
		var s zk.Stat
		s.Decode(d)
		stat(s)
	case zk.OpGetData:
		var r zk.GetDataResponse
		r.Decode(d)
		fmt.Fprintf(out, " %q", r.Data)
		stat(r.Stat)
	case zk.OpGetChildren, zk.OpGetChildren2:
		var r zk.GetChildrenResponse
		r.Decode(d, op)
		slices.Sort(r.Names)
		fmt.Fprint(out, " ", r.Names)
		if op == zk.OpGetChildren2 {
			stat(r.Stat)
		}
	case zk.OpGetACL:
		var r zk.GetACLResponse
		r.Decode(d)
		fmt.Fprint(out, " ", r.ACL)
	case zk.OpSync:
		fmt.Fprint(out, " ", d.String())
	case zk.OpAddWatch, zk.OpGetAllChildrenNumber:
		fmt.Fprint(out, " ", d.Int32())
	case zk.OpGetEphemerals:
		names := d.Strings()
		slices.Sort(names)
		fmt.Fprint(out, " ", names)
	case zk.OpWhoAmI:
		ids := d.IDs()
		slices.SortFunc(ids, func(a, b zk.ID) int { return strings.Compare(a.Scheme+a.ID, b.Scheme+b.ID) })
		fmt.Fprint(out, " ", ids)
	case zk.OpMultiRead:
		var r zk.MultiReadResponse
		r.Decode(d)
		for _, m := range r.Results {
			slices.Sort(m.Names)
			fmt.Fprintf(out, " [%d %v %q %v]", m.Op, m.Err, m.Data, m.Names)
		}
	case zk.OpMulti:
		var r zk.MultiResponse
		r.Decode(d)
		for _, m := range r.Results {
			fmt.Fprintf(out, " [%d %v %s]", m.Op, m.Err, m.Path)
		}
	}
}

func number(s string) int64 {
	v, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// TestReadsBehindWrites sends reads at just the time when the write before them is done, in many sessions:
// the replies stay in order, and a read sees the write before it.
func TestReadsBehindWrites(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	const rounds, each = 60, 20 // requests in flight: 2 * each
	var peers sync.WaitGroup
	for k := range 8 {
		p := open(t, s, 10_000)
		path := fmt.Sprint("/a", k)
		p.call(t, zk.OpCreate, createBody(path, nil, 0))
		peers.Go(func() {
			for round := range rounds {
				first := p.xid + 1
				for i := range each {
					p.nc.Write(p.frame(zk.OpSetData, setBody(path, fmt.Append(nil, round, i), -1)))
					p.nc.Write(p.frame(zk.OpGetData, pathBody(path, false)))
				}
				for i := range 2 * each {
					b, err := p.read()
					if err != nil {
						t.Error(err)
						return
					}
					d := zk.NewDecoder(b)
					var h zk.ReplyHeader
					if h.Decode(&d); h.Xid != first+int32(i) || h.Err != zk.OK {
						t.Errorf("got %+v, want the reply to %d", h, first+int32(i))
						return
					}
					if i%2 == 1 && string(d.Buffer()) != fmt.Sprint(round, i/2) {
						t.Errorf("a read does not see the write before it")
						return
					}
				}
			}
		})
	}
	peers.Wait()
}
