package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"platter/tools/zkwire"
)

// describe puts a reply in words. What two servers cannot agree on is left out: times, passwords, the numbers of
// sessions (the owner of a node is a peer's name); zxids are relative to the run's base.
func (w *world) describe(r *Request, reply zkwire.Reply) string {
	if r == nil {
		return fmt.Sprintf("a reply to nothing: %d", reply.Xid)
	}
	op := r.Op
	if op == "raw" {
		for name, n := range operations {
			if n == r.Type {
				op = name
			}
		}
	}
	out := fmt.Sprintf("%s: %d z%s", op, reply.Err, w.zxid(reply.Zxid))
	if reply.Err != 0 && len(reply.Body) == 0 {
		return out
	}
	d := zkwire.Dec{B: reply.Body}
	if reply.Err == 0 {
		out += w.record(op, &d)
	}
	if d.Bad {
		return out + " CUT OFF " + hex.EncodeToString(reply.Body)
	}
	if len(d.B) > 0 {
		out += " and " + hex.EncodeToString(d.B)
	}
	return out
}

func (w *world) zxid(z int64) string {
	switch {
	case z == -1 || z == 0:
		return fmt.Sprintf("=%d", z)
	case z < w.base:
		return "old"
	}
	return fmt.Sprintf("%+d", z-w.base)
}

func (w *world) record(op string, d *zkwire.Dec) string {
	switch op {
	case "create", "sync":
		return fmt.Sprintf(" %q", d.Str())
	case "create2", "createContainer", "createTTL":
		return fmt.Sprintf(" %q", d.Str()) + w.stat(d)
	case "exists", "set", "setACL":
		return w.stat(d)
	case "get":
		return data(d.Buf()) + w.stat(d)
	case "children", "ephemerals":
		return names(d.Strs())
	case "children2":
		return names(d.Strs()) + w.stat(d)
	case "getACL":
		return acl(d) + w.stat(d)
	case "allChildren", "addWatch":
		return fmt.Sprint(" ", d.I32())
	case "whoAmI":
		var who []string
		for n := d.I32(); n > 0 && !d.Bad; n-- {
			who = append(who, d.Str()+":"+d.Str())
		}
		return names(who)
	case "multi", "multiRead":
		return w.multi(d)
	}
	return ""
}

// names are compared without their order: Apache's is that of a hash set.
func names(v []string) string {
	slices.Sort(v)
	if slices.Contains(v, "zookeeper") { // the tree's own root, with what others have left
		return " [...]"
	}
	return fmt.Sprintf(" %q", v)
}

func data(b []byte) string {
	if b == nil {
		return " null"
	}
	return fmt.Sprintf(" %q", b)
}

func acl(d *zkwire.Dec) string {
	out := []string{}
	for n := d.I32(); n > 0 && !d.Bad; n-- {
		out = append(out, fmt.Sprintf("%d %s:%s", d.I32(), d.Str(), d.Str()))
	}
	return fmt.Sprintf(" %q", out)
}

func (w *world) stat(d *zkwire.Dec) string {
	s := d.Stat()
	if s.Czxid == 0 {
		return " {/}"
	}
	moved := ""
	if s.Mtime < s.Ctime || s.Ctime < 0 {
		moved = fmt.Sprintf(" TIMES %d %d", s.Ctime, s.Mtime)
	}
	return fmt.Sprintf(" {c%s m%s p%s v%d cv%d av%d %s %dB %dn%s}", w.zxid(s.Czxid), w.zxid(s.Mzxid), w.zxid(s.Pzxid),
		s.Version, s.Cversion, s.Aversion, w.owner(s.Owner), s.DataLength, s.NumChildren, moved)
}

// owner names a session by the peer that has it, or says what kind of node it is.
func (w *world) owner(id int64) string {
	if name, ok := w.names[id]; ok {
		return name
	}
	switch {
	case id == 0:
		return "nobody"
	case uint64(id) == 1<<63:
		return "container"
	case uint64(id)>>56 == 0xff:
		return fmt.Sprintf("ttl%d", uint64(id)<<8>>8)
	}
	return "a stranger"
}

func (w *world) multi(d *zkwire.Dec) string {
	var out strings.Builder
	for !d.Bad {
		op, done, code := d.I32(), d.Bool(), d.I32()
		if done {
			fmt.Fprintf(&out, " end(%d,%d)", op, code)
			break
		}
		fmt.Fprintf(&out, " [%d %d", op, code)
		for name, n := range operations {
			if n == op && op != zkwire.OpMulti && op != zkwire.OpMultiRead {
				out.WriteString(w.record(name, d))
			}
		}
		if op == -1 {
			fmt.Fprint(&out, " ", d.I32())
		}
		out.WriteString("]")
	}
	return out.String()
}
