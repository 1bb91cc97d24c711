package zkcli

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"platter/coord/zkclient"
)

// statJSON is a Stat by zkCli's names.
type statJSON struct {
	CZxid          string `json:"cZxid"`
	Ctime          string `json:"ctime"`
	MZxid          string `json:"mZxid"`
	Mtime          string `json:"mtime"`
	PZxid          string `json:"pZxid"`
	Cversion       int32  `json:"cversion"`
	DataVersion    int32  `json:"dataVersion"`
	ACLVersion     int32  `json:"aclVersion"`
	EphemeralOwner string `json:"ephemeralOwner"`
	DataLength     int32  `json:"dataLength"`
	NumChildren    int32  `json:"numChildren"`
}

func hex(v int64) string { return fmt.Sprintf("0x%x", uint64(v)) }

func toJSON(s zkclient.Stat) *statJSON {
	at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
	return &statJSON{
		CZxid: hex(s.Czxid), Ctime: at(s.Ctime), MZxid: hex(s.Mzxid), Mtime: at(s.Mtime), PZxid: hex(s.Pzxid),
		Cversion: s.Cversion, DataVersion: s.Version, ACLVersion: s.Aversion,
		EphemeralOwner: hex(s.EphemeralOwner), DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

// statText is StatPrinter's.
func statText(s zkclient.Stat) string {
	at := func(ms int64) string { return time.UnixMilli(ms).Format("Mon Jan 02 15:04:05 MST 2006") }
	return fmt.Sprintf("cZxid = %s\nctime = %s\nmZxid = %s\nmtime = %s\npZxid = %s\ncversion = %d\ndataVersion = %d\n"+
		"aclVersion = %d\nephemeralOwner = %s\ndataLength = %d\nnumChildren = %d",
		hex(s.Czxid), at(s.Ctime), hex(s.Mzxid), at(s.Mtime), hex(s.Pzxid), s.Cversion, s.Version,
		s.Aversion, hex(s.EphemeralOwner), s.DataLength, s.NumChildren)
}

// dataJSON is a node's data: as text where it is UTF-8, else in base64; neither for null.
type dataJSON struct {
	Data   *string `json:"data,omitempty"`
	Base64 *string `json:"dataBase64,omitempty"`
}

func toData(b []byte) (d dataJSON) {
	switch {
	case b == nil:
	case utf8.Valid(b):
		s := string(b)
		d.Data = &s
	default:
		s := base64.StdEncoding.EncodeToString(b)
		d.Base64 = &s
	}
	return d
}

const permLetters = "rwcda" // bit 0 to 4

// formatPerms gives the letters in zkCli's order, cdrwa.
func formatPerms(perms int32) string {
	var b strings.Builder
	for _, c := range "cdrwa" {
		if perms&(1<<strings.IndexRune(permLetters, c)) != 0 {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// ParseACL reads scheme:id:perms[,scheme:id:perms…]; an id may hold colons (digest:user:hash:cdrwa).
func ParseACL(s string) ([]zkclient.ACL, error) {
	var list []zkclient.ACL
	for part := range strings.SplitSeq(s, ",") {
		scheme, rest, ok := strings.Cut(strings.TrimSpace(part), ":")
		at := strings.LastIndexByte(rest, ':')
		if !ok || at < 0 || scheme == "" {
			return nil, fmt.Errorf("%q is not scheme:id:permissions", part)
		}
		var a zkclient.ACL
		a.Scheme, a.ID.ID = scheme, rest[:at]
		for _, c := range rest[at+1:] {
			bit := strings.IndexRune(permLetters, c)
			if bit < 0 {
				return nil, fmt.Errorf("%q: %q is none of the permissions c, d, r, w, a", part, c)
			}
			a.Perms |= 1 << bit
		}
		list = append(list, a)
	}
	return list, nil
}

func formatACL(list []zkclient.ACL) []string {
	var out []string
	for _, a := range list {
		out = append(out, a.Scheme+":"+a.ID.ID+":"+formatPerms(a.Perms))
	}
	return slices.Clip(out)
}

// eventNames are as zkCli prints them.
var eventNames = map[zkclient.EventType]string{
	zkclient.NodeCreated: "NodeCreated", zkclient.NodeDeleted: "NodeDeleted",
	zkclient.NodeDataChanged: "NodeDataChanged", zkclient.NodeChildrenChanged: "NodeChildrenChanged",
	zkclient.SessionLost: "SessionLost", zkclient.Missed: "Missed",
}
