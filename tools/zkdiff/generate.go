package main

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"

	"platter/tools/zkwire"
)

// generator makes random scripts over few paths, so that what its peers do often meets.
type generator struct {
	r     *rand.Rand
	steps int
}

// generate makes the script of a seed.
func generate(seed uint64) []Step {
	g := &generator{r: rand.New(rand.NewPCG(seed, 7))}
	g.steps = 6 + g.r.IntN(24)
	var out []Step
	for range g.steps {
		out = append(out, g.step())
	}
	return out
}

func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

func pick[T any](g *generator, v ...T) T { return v[g.r.IntN(len(v))] }

func (g *generator) step() Step {
	s := Step{Kind: "send", Peer: g.r.IntN(peerCount)}
	switch n := g.r.IntN(200); {
	case n < 8:
		s.Kind, s.Bad = "reattach", g.one(4)
	case n < 16:
		s.Kind = "cut"
	case n < 24:
		s.Kind = "close"
	case n < 25:
		s.Kind = "ghost"
	}
	if (s.Kind == "reattach" || s.Kind == "cut") && !s.Bad && !g.one(4) {
		s.Reqs = append(s.Reqs, g.setWatches())
	}
	// Two kinds of request go alone: those on which a server may close, since then it depends on what of the others
	// is answered, and auth, which Apache's server answers ahead of what waits.
	switch n := g.r.IntN(100); {
	case s.Kind == "send" && n < 8:
		s.Reqs = []Request{g.odd()}
		return s
	case s.Kind == "send" && n < 12:
		s.Reqs = []Request{g.auth()}
		return s
	}
	for range 1 + g.r.IntN(4) {
		r := g.request()
		s.Reqs = append(s.Reqs, r)
		// What arrives right behind a setACL is judged by the old list, or by the new one: it depends.
		if r.Op == "setACL" {
			break
		}
	}
	return s
}

func (g *generator) auth() Request {
	return Request{Op: "auth", Path: pick(g, "digest", "digest", "digest", "digest", "ip", "world", "nosuch"),
		Data: pick(g, "u1:p1", "u2:p2", "u2:p2", "u3", "")}
}

func (g *generator) path() string {
	switch n := g.r.IntN(100); {
	case n < 4:
		return g.oddPath()
	case n < 12:
		return placeholder
	}
	p := placeholder
	for range 1 + g.r.IntN(3) {
		p += "/" + pick(g, "a", "b", "c")
		if g.one(2) {
			break
		}
	}
	return p
}

func (g *generator) oddPath() string {
	return pick(g, "", "/", "nope", placeholder+"/", placeholder+"/a/", placeholder+"//a", placeholder+"/./a", placeholder+"/a/..",
		placeholder+"/..a", placeholder+"/a.", placeholder+"/\x00", placeholder+"/\x01", placeholder+"/\u00e9\u4e16", placeholder+"/\U0001f600",
		placeholder+"/\ue000", placeholder+"/\ufff0", placeholder+"/\u0085", placeholder+"/a b",
		"/zookeeper", "/zookeeper/config/x/y", placeholder+"/"+strings.Repeat("x", 300), placeholder+"/a/a/a/a/a/a", "..", "//")
}

func (g *generator) version() int32 {
	if g.one(2) {
		return -1
	}
	return pick[int32](g, 0, 0, 1, 1, 2, 3, -2, 1<<30)
}

func (g *generator) content(r *Request) {
	switch g.r.IntN(5) {
	case 0:
		r.Null = true
	case 1:
	default:
		r.Data = pick(g, "x", "hello", "\x00\u0080", strings.Repeat("d", 40))
	}
}

func (g *generator) acl() string {
	if !g.one(8) {
		return ""
	}
	return pick(g, "null", "empty", "read", "noread", "nothing", "creator", "creator2", "u1", "u2", "both", "ip", "net", "other", "twice",
		"order", "scheme", "badip", "badbits", "badworld", "baddig", "bigperms", "super", "x509", "sasl")
}

// create is any operation that makes a node, mostly with flags that suit it.
func (g *generator) create() Request {
	r := Request{Op: pick(g, "create", "create", "create", "create2", "create2", "createContainer", "createTTL"), Path: g.path(), ACL: g.acl()}
	g.content(&r)
	switch r.Op {
	case "createContainer":
		r.N = 4
	case "createTTL":
		r.N, r.TTL = pick[int32](g, 5, 5, 6, 6), pick[int64](g, 1<<39, 1<<38, 1<<30, 1<<40, 0, -1)
	default:
		r.N = pick[int32](g, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3)
		if g.one(30) {
			r.N = pick[int32](g, 4, 5, 6, 7, -1, 99)
		}
		if r.N&2 != 0 && (g.one(2) || r.Path == placeholder) {
			suffix := pick(g, "/", "-", "/s")
			if r.Path == placeholder { // beside it, the number would be that of what others have made
				suffix = "/" + suffix[1:]
			}
			r.Path += suffix
		}
	}
	return r
}

func (g *generator) write() Request {
	switch g.r.IntN(10) {
	case 0, 1, 2, 3, 4:
		return g.create()
	case 5, 6:
		return Request{Op: "delete", Path: g.path(), N: g.version()}
	}
	r := Request{Op: "set", Path: g.path(), N: g.version()}
	g.content(&r)
	return r
}

func (g *generator) read() Request {
	return Request{Op: pick(g, "exists", "exists", "get", "get", "children", "children2"), Path: g.readPath(), Watch: g.one(2)}
}

// readPath keeps away from what other scripts change, and from characters that Apache's server sends back in another
// encoding than UTF-8.
func (g *generator) readPath() string {
	for {
		if p := g.path(); p != "/" && p != "" && !strings.HasPrefix(p, "/zookeeper") && !strings.HasSuffix(p, "\U0001f600") {
			return p
		}
	}
}

// request is any sound one.
func (g *generator) request() Request {
	switch n := g.r.IntN(100); {
	case n < 35:
		return g.write()
	case n < 55:
		return g.read()
	case n < 65:
		return g.multi()
	case n < 69:
		return g.multiRead()
	case n < 77:
		return Request{Op: "addWatch", Path: g.readPath(), N: pick[int32](g, 0, 0, 1, 1, 1, 1, 2, -1)}
	case n < 80:
		return Request{Op: pick(g, "checkWatches", "removeWatches", "removeWatches"), Path: g.readPath(), N: pick[int32](g, 1, 2, 3, 3, 3, 0, 4, 5, 9)}
	case n < 83:
		return Request{Op: "setACL", Path: g.path(), ACL: g.acl(), N: g.version()}
	case n < 86:
		return Request{Op: "getACL", Path: g.readPath()}
	case n < 90:
		return g.setWatches()
	case n < 93:
		return Request{Op: "sync", Path: g.readPath()}
	case n < 95:
		return Request{Op: "ephemerals", Path: pick(g, g.readPath(), placeholder, "/", "")}
	case n < 97:
		return Request{Op: "allChildren", Path: g.readPath()}
	case n < 99:
		return Request{Op: "whoAmI"}
	}
	return Request{Op: "reconfig"}
}

func (g *generator) multi() Request {
	r := Request{Op: "multi"}
	for range g.r.IntN(5) {
		if g.one(4) {
			r.Ops = append(r.Ops, Request{Op: "check", Path: g.path(), N: g.version()})
		} else {
			r.Ops = append(r.Ops, g.write())
		}
	}
	return r
}

func (g *generator) multiRead() Request {
	r := Request{Op: "multiRead"}
	for range g.r.IntN(4) {
		r.Ops = append(r.Ops, Request{Op: pick(g, "get", "children"), Path: g.readPath(), Watch: g.one(8)})
	}
	return r
}

func (g *generator) setWatches() Request {
	r := Request{Op: pick(g, "setWatches", "setWatches2"), Zxid: int64(g.r.IntN(60)) - 2}
	for i := range r.Lists[:map[string]int{"setWatches": 3, "setWatches2": 5}[r.Op]] {
		for range g.r.IntN(3) {
			r.Lists[i] = append(r.Lists[i], g.readPath())
		}
	}
	return r
}

// odd is a request that no sound client sends. It stands last: a server may close on it.
func (g *generator) odd() Request {
	switch g.r.IntN(10) {
	case 9:
		return Request{Op: "sasl", Data: pick(g, "", "token"), Null: g.one(3)}
	case 8: // flags that do not suit the operation. With a bad TTL they kill Apache's server.
		r := Request{Op: pick(g, "createContainer", "createTTL"), Path: g.path(), N: pick[int32](g, 0, 1, 2, 4), TTL: 1 << 30}
		return r
	case 0: // an operation that nobody knows, or that is not for clients
		return Request{Op: "raw", Type: pick[int32](g, 0, -1, 10, 23, 77, 99, 108, 1<<30, -1<<31, zkwire.OpDeleteContainer)}
	case 1: // a multi with what cannot be in it
		r := g.multi()
		r.Ops = append(r.Ops, Request{Op: pick(g, "exists", "get", "children", "setACL", "sync", "multi", "close"), Path: g.readPath()})
		return r
	case 2: // a multiRead that writes
		r := g.multiRead()
		r.Ops = append(r.Ops, g.write())
		return r
	case 3: // a multi without an end, or with the end in the middle
		r := g.multi()
		if r.Open = g.one(2); !r.Open && len(r.Ops) > 0 {
			r.Ops[g.r.IntN(len(r.Ops))].Ended = true
		}
		return r
	}
	return g.damaged()
}

// damaged is a sound request whose record was cut, lengthened or changed in one place.
func (g *generator) damaged() Request {
	var r Request
	for r = g.request(); r.xid() != 0 || r.Op == "createTTL" || r.Op == "allChildren" || r.Op == "whoAmI"; {
		r = g.request()
	}
	const header = 12
	b := r.Frame(0, 0)[header:]
	switch g.r.IntN(4) {
	case 0:
		b = b[:g.r.IntN(len(b)+1)]
	case 1:
		b = append(b, pick(g, "\x00", "garbage", "\x00\x00\x00\x01x")...)
	case 2: // the path's length
		if len(b) >= 4 {
			copy(b, pick(g, "\xff\xff\xff\xff", "\xff\xff\xff\xfe", "\x7f\xff\xff\xff", "\x00\x00\x00\x00", "\x00\x0f\xff\xff", "\x80\x00\x00\x00"))
		}
	case 3: // any int, but for the path. A multi with a path of no length confuses Apache's server.
		if r.Op == "multi" {
			break
		}
		if at := 4 + len(r.Path); at+4 <= len(b) {
			at += 4 * g.r.IntN((len(b)-at)/4)
			copy(b[at:], pick(g, "\xff\xff\xff\xff", "\xff\xff\xff\xfe", "\x7f\xff\xff\xff", "\x00\x00\x00\x00"))
		}
	}
	return Request{Op: "raw", Type: operations[r.Op], Hex: hex.EncodeToString(b)}
}
