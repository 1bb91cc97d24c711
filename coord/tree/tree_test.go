package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"platter/coord/zk"
)

// machine runs a transcript's commands; every write is one entry at one millisecond more.
type machine struct {
	t   *Tree
	now int64
}

// TestTranscripts: script in, results, changes and state out.
//
//	session ID...           create sessions
//	close ID
//	write                   one line an entry: SESSION VERB ARGS (verbs below)
//	multi ID                one line an operation: VERB ARGS
//	stat PATH...
//	get PATH, ls PATH, acl PATH
//	reload                  through a snapshot
//	tree                    every node
//
// Verbs: create PATH DATA [e][s] [perms=N|acl=none|acl=sasl], delete PATH V, set PATH DATA V,
// check PATH V, setacl PATH perms V. DATA "-" is null, "”" is empty.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		m := &machine{t: New(), now: 1000}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return m.run(t, d) })
	})
}

func (m *machine) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "session":
		for _, a := range d.CmdArgs {
			m.apply(&out, num(a.Key), zk.OpCreateSession, SessionBody{4000, []byte("password")}.Append(nil))
		}
	case "close":
		m.apply(&out, num(d.CmdArgs[0].Key), zk.OpCloseSession, nil)
	case "write":
		for line := range strings.Lines(d.Input) {
			f := strings.Fields(line)
			op, body := one(t, f[1:])
			m.apply(&out, num(f[0]), op, body)
		}
	case "multi":
		var q zk.MultiRequest
		for line := range strings.Lines(d.Input) {
			q.Ops = append(q.Ops, multiOp(t, strings.Fields(line)))
		}
		m.apply(&out, num(d.CmdArgs[0].Key), zk.OpMulti, q.Append(nil))
	case "stat":
		for _, a := range d.CmdArgs {
			st, code := m.t.Exists(a.Key)
			fmt.Fprintf(&out, "%s %s\n", a.Key, statText(st, code))
		}
	case "get":
		data, st, code := m.t.Get(d.CmdArgs[0].Key, nil)
		fmt.Fprintf(&out, "%s %s\n", dataText(data), statText(st, code))
	case "ls":
		names, _, code := m.t.Children(d.CmdArgs[0].Key, nil)
		if code != zk.OK {
			return code.Error() + "\n"
		}
		fmt.Fprintln(&out, slices.Sorted(names))
	case "acl":
		list, _, code := m.t.ACL(d.CmdArgs[0].Key, nil)
		fmt.Fprintln(&out, list, code)
	case "reload":
		m.t = reload(t, m.t)
	case "tree":
		walk(m.t.root, "/", func(p string, n *node) { fmt.Fprintf(&out, "%s %s\n", p, dataText(n.data)) })
		fmt.Fprintf(&out, "zxid %d, %d nodes, %d sessions\n", m.t.Zxid(), m.t.NodeCount(), len(m.t.sessions))
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return out.String()
}

func (m *machine) apply(out *strings.Builder, session int64, op zk.Op, body []byte) {
	m.now++
	r, changes := m.t.Apply(&Entry{Zxid: m.t.Zxid() + 1, TimeMs: m.now, Session: session, Op: op, Body: body})
	fmt.Fprint(out, r.Err)
	if r.Path != "" {
		fmt.Fprintf(out, " %s", r.Path)
	}
	for _, x := range r.Multi.Results {
		fmt.Fprintf(out, " [%v]", x.Err)
	}
	for _, c := range changes {
		fmt.Fprintf(out, " %s(%s)", [...]string{1: "created", 2: "deleted", 3: "changed"}[c.Type], c.Path)
	}
	fmt.Fprintln(out)
}

func num(s string) int64 {
	v, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return v
}

func data(s string) []byte {
	switch s {
	case "-":
		return nil
	case "''":
		return []byte{}
	}
	return []byte(s)
}

func dataText(b []byte) string {
	if b == nil {
		return "null"
	}
	return strconv.Quote(string(b))
}

func multiOp(t *testing.T, f []string) zk.MultiOp {
	o := zk.MultiOp{}
	switch f[0] {
	case "create":
		o.Op = zk.OpCreate
		o.Create = zk.CreateRequest{Path: f[1], Data: data(f[2]), ACL: zk.WorldAnyone()}
		for _, a := range f[3:] {
			switch {
			case a == "e" || a == "s" || a == "es":
				o.Create.Flags = int32(map[string]int{"e": 1, "s": 2, "es": 3}[a])
			case a == "acl=none":
				o.Create.ACL = nil
			case a == "acl=sasl":
				o.Create.ACL = []zk.ACL{{Perms: zk.PermAll, ID: zk.ID{Scheme: "sasl", ID: "u"}}}
			case strings.HasPrefix(a, "perms="):
				o.Create.ACL[0].Perms = int32(num(a[6:]))
			case strings.HasPrefix(a, "flags="):
				o.Create.Flags = int32(num(a[6:]))
			}
		}
	case "delete", "check":
		o.Op = map[string]zk.Op{"delete": zk.OpDelete, "check": zk.OpCheck}[f[0]]
		o.Target = zk.DeleteRequest{Path: f[1], Version: int32(num(f[2]))}
	case "set":
		o.Op = zk.OpSetData
		o.Set = zk.SetDataRequest{Path: f[1], Data: data(f[2]), Version: int32(num(f[3]))}
	default:
		t.Fatalf("unknown verb %q", f[0])
	}
	return o
}

func one(t *testing.T, f []string) (zk.Op, []byte) {
	if f[0] == "setacl" {
		list := []zk.ACL{{Perms: int32(num(f[2])), ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		return zk.OpSetACL, zk.SetACLRequest{Path: f[1], ACL: list, Version: int32(num(f[3]))}.Append(nil)
	}
	o := multiOp(t, f)
	switch o.Op {
	case zk.OpCreate:
		return o.Op, o.Create.Append(nil, o.Op)
	case zk.OpSetData:
		return o.Op, o.Set.Append(nil)
	}
	return o.Op, o.Target.Append(nil)
}

func statText(s zk.Stat, code zk.Code) string {
	if code != zk.OK {
		return code.Error()
	}
	return fmt.Sprintf("c=%d m=%d p=%d ct=%d mt=%d v=%d cv=%d av=%d owner=%d len=%d kids=%d",
		s.Czxid, s.Mzxid, s.Pzxid, s.Ctime, s.Mtime, s.Version, s.Cversion, s.Aversion,
		s.EphemeralOwner, s.DataLength, s.NumChildren)
}

func walk(n *node, path string, f func(string, *node)) {
	f(path, n)
	for _, child := range n.children.sorted() {
		walk(child, strings.TrimRight(path, "/")+"/"+child.name, f)
	}
}

// encode gives a snapshot's bytes.
func encode(t testing.TB, tr *Tree) [][]byte {
	t.Helper()
	var chunks [][]byte
	err := tr.Capture().Encode(func(b []byte) error {
		chunks = append(chunks, slices.Clone(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return chunks
}

func reload(t testing.TB, tr *Tree) *Tree {
	t.Helper()
	l := NewLoader()
	for _, c := range encode(t, tr) {
		if err := l.Chunk(c); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
