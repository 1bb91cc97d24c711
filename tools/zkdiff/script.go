package main

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"platter/tools/zkwire"
)

// placeholder stands in scripts where a server's run has its own root: a path of the same length.
const placeholder = "/@@@@@@@"

// Request is one request of a script. Op names the operation; the other fields are what its record needs.
type Request struct {
	Op    string      `json:"op"`
	Path  string      `json:"path,omitempty"`
	Data  string      `json:"data,omitempty"`
	Null  bool        `json:"null,omitempty"` // no data at all
	N     int32       `json:"n,omitempty"`    // flags, version, mode or type
	TTL   int64       `json:"ttl,omitempty"`
	ACL   string      `json:"acl,omitempty"` // a name of acls
	Watch bool        `json:"watch,omitempty"`
	Zxid  int64       `json:"zxid,omitempty"`  // relative to the run's base
	Lists [5][]string `json:"lists,omitzero"`  // data, exist, child, persistent, recursive
	Ops   []Request   `json:"ops,omitempty"`   // of a multi
	Hex   string      `json:"hex,omitempty"`   // a raw record
	Type  int32       `json:"type,omitempty"`  // a raw operation's number
	Open  bool        `json:"open,omitempty"`  // a multi without its end
	Ended bool        `json:"ended,omitempty"` // by a multi's end mark too early
}

// Step is what one peer does before all of them are looked at.
//
//	send      its requests go out in one write
//	reattach  its session goes to another connection first; Bad: with a wrong password, which is refused
//	cut       its connection ends without a word, then as reattach
//	close     its session is closed after the requests, and a new one takes its place
//	ghost     a session of the shortest timeout sends the requests, falls silent, and expires
type Step struct {
	Kind string    `json:"kind"`
	Peer int       `json:"peer"`
	Bad  bool      `json:"bad,omitempty"`
	Reqs []Request `json:"reqs,omitempty"`
}

// operations are the numbers of the names.
var operations = map[string]int32{
	"create": zkwire.OpCreate, "create2": zkwire.OpCreate2, "createContainer": zkwire.OpCreateContainer,
	"createTTL": zkwire.OpCreateTTL, "delete": zkwire.OpDelete, "deleteContainer": zkwire.OpDeleteContainer,
	"exists": zkwire.OpExists, "get": zkwire.OpGetData, "set": zkwire.OpSetData, "getACL": zkwire.OpGetACL,
	"setACL": zkwire.OpSetACL, "children": zkwire.OpGetChildren, "children2": zkwire.OpGetChildren2,
	"sync": zkwire.OpSync, "check": zkwire.OpCheck, "multi": zkwire.OpMulti, "multiRead": zkwire.OpMultiRead,
	"reconfig": zkwire.OpReconfig, "checkWatches": zkwire.OpCheckWatches, "removeWatches": zkwire.OpRemoveWatches,
	"auth": zkwire.OpAuth, "setWatches": zkwire.OpSetWatches, "setWatches2": zkwire.OpSetWatches2,
	"sasl": zkwire.OpSASL, "ephemerals": zkwire.OpGetEphemerals, "allChildren": zkwire.OpGetAllChildrenNumber,
	"addWatch": zkwire.OpAddWatch, "whoAmI": zkwire.OpWhoAmI, "close": zkwire.OpClose,
}

func digest(userPassword string) string {
	user := userPassword
	for i := range userPassword {
		if userPassword[i] == ':' {
			user = userPassword[:i]
			break
		}
	}
	sum := sha1.Sum([]byte(userPassword))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// acls are the access lists that scripts name. "null" is no list at all.
var acls = map[string][]zkwire.ACL{
	"":         zkwire.World,
	"null":     nil,
	"empty":    {},
	"read":     {{Perms: 1, Scheme: "world", ID: "anyone"}},
	"noread":   {{Perms: 30, Scheme: "world", ID: "anyone"}},
	"nothing":  {{Perms: 0, Scheme: "world", ID: "anyone"}},
	"creator":  {{Perms: 31, Scheme: "auth", ID: ""}},
	"creator2": {{Perms: 31, Scheme: "auth", ID: "ignored"}, {Perms: 1, Scheme: "world", ID: "anyone"}},
	"u1":       {{Perms: 31, Scheme: "digest", ID: digest("u1:p1")}},
	"u2":       {{Perms: 15, Scheme: "digest", ID: digest("u2:p2")}, {Perms: 1, Scheme: "world", ID: "anyone"}},
	"both":     {{Perms: 3, Scheme: "digest", ID: digest("u1:p1")}, {Perms: 28, Scheme: "digest", ID: digest("u2:p2")}},
	"ip":       {{Perms: 31, Scheme: "ip", ID: "127.0.0.1"}},
	"net":      {{Perms: 31, Scheme: "ip", ID: "127.0.0.0/8"}},
	"other":    {{Perms: 31, Scheme: "ip", ID: "10.1.2.3"}, {Perms: 17, Scheme: "world", ID: "anyone"}},
	"twice":    {{Perms: 31, Scheme: "world", ID: "anyone"}, {Perms: 31, Scheme: "world", ID: "anyone"}},
	"order":    {{Perms: 2, Scheme: "world", ID: "anyone"}, {Perms: 31, Scheme: "ip", ID: "127.0.0.1"}, {Perms: 2, Scheme: "world", ID: "anyone"}},
	"scheme":   {{Perms: 31, Scheme: "nosuch", ID: "x"}},
	"badip":    {{Perms: 31, Scheme: "ip", ID: "300.1.2"}},
	"badbits":  {{Perms: 31, Scheme: "ip", ID: "127.0.0.1/99"}},
	"badworld": {{Perms: 31, Scheme: "world", ID: "everyone"}},
	"baddig":   {{Perms: 31, Scheme: "digest", ID: "nocolon"}},
	"bigperms": {{Perms: -1, Scheme: "world", ID: "anyone"}},
	"super":    {{Perms: 31, Scheme: "super", ID: "x"}},
	"x509":     {{Perms: 31, Scheme: "x509", ID: "CN=x"}},
	"sasl":     {{Perms: 31, Scheme: "sasl", ID: "me"}},
}

func (r *Request) data() []byte {
	if r.Null {
		return nil
	}
	return []byte(r.Data)
}

func (r *Request) acl(e *zkwire.Enc) {
	if r.ACL == "null" {
		e.I32(-1)
		return
	}
	e.ACLs(acls[r.ACL])
}

// Frame is the request on the wire, with the placeholder in its paths; base is what Zxid is relative to.
func (r *Request) Frame(xid int32, base int64) []byte {
	if r.Op == "raw" {
		return zkwire.Request(xid, r.Type, func(e *zkwire.Enc) {
			b, err := hex.DecodeString(r.Hex)
			if err != nil {
				panic(fmt.Sprintf("a script's hex: %v", err))
			}
			e.B = append(e.B, b...)
		})
	}
	return zkwire.Request(xid, operations[r.Op], func(e *zkwire.Enc) { r.record(e, base) })
}

// xid is the one that clients send with some operations; 0: any.
func (r *Request) xid() int32 {
	switch r.Op {
	case "auth":
		return zkwire.XidAuth
	case "setWatches", "setWatches2":
		return zkwire.XidSetWatches
	}
	return 0
}

func (r *Request) record(e *zkwire.Enc, base int64) {
	switch r.Op {
	case "create", "create2", "createContainer", "createTTL":
		e.Str(r.Path)
		e.Buf(r.data())
		r.acl(e)
		e.I32(r.N)
		if r.Op == "createTTL" {
			e.I64(r.TTL)
		}
	case "delete", "check", "checkWatches", "removeWatches", "addWatch":
		zkwire.PathInt(r.Path, r.N)(e)
	case "set":
		zkwire.Set(r.Path, r.data(), r.N)(e)
	case "setACL":
		e.Str(r.Path)
		r.acl(e)
		e.I32(r.N)
	case "exists", "get", "children", "children2":
		zkwire.PathWatch(r.Path, r.Watch)(e)
	case "getACL", "sync", "ephemerals", "allChildren", "deleteContainer":
		e.Str(r.Path)
	case "auth":
		zkwire.Auth(r.Path, r.data())(e)
	case "sasl":
		e.Buf(r.data())
	case "reconfig":
		for range 3 {
			e.Str(r.Path)
		}
		e.I64(-1)
	case "setWatches", "setWatches2":
		e.I64(base + r.Zxid)
		for _, paths := range r.Lists[:map[string]int{"setWatches": 3, "setWatches2": 5}[r.Op]] {
			e.Strs(paths)
		}
	case "multi", "multiRead":
		for i := range r.Ops {
			e.MultiHeader(operations[r.Ops[i].Op], r.Ops[i].Ended)
			r.Ops[i].record(e, base)
		}
		if !r.Open {
			e.MultiHeader(-1, true)
		}
	}
}
