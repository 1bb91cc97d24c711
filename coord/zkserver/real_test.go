package zkserver

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"platter/coord/realzk"
	"platter/coord/zk"
	"platter/io/memdisk"
)

const (
	worldPeers = 3
	worldSteps = 60
	worldSeeds = 15
)

var worldRuns int

// world is one server seen by a few peers, under a root of its own.
type world struct {
	script
	addr string
	root string
}

func newWorld(t *testing.T, addr, root string) *world {
	w := &world{script: script{peers: map[string]*peer{}}, addr: addr, root: root}
	for i := range worldPeers {
		w.open(t, fmt.Sprint("p", i))
	}
	w.base = 0
	h, _ := w.peers["p0"].call(t, zk.OpCreate, createBody(root, nil, 0))
	if h.Err != zk.OK {
		t.Fatal(root, h.Err)
	}
	w.base = h.Zxid
	return w
}

func (w *world) open(t *testing.T, name string) {
	p := dialAddr(t, w.addr)
	if r, err := p.connect(zk.ConnectRequest{TimeoutMs: 10_000, HasReadOnly: true}); err != nil || r.SessionID == 0 {
		t.Fatal(r, err)
	}
	w.peers[name] = p
}

// reattach takes a peer's session to another connection.
func (w *world) reattach(t *testing.T, name string) {
	old, p := w.peers[name], dialAddr(t, w.addr)
	q := zk.ConnectRequest{TimeoutMs: 10_000, HasReadOnly: true, SessionID: old.id, Password: old.password}
	if r, err := p.connect(q); err != nil || r.SessionID != old.id {
		t.Fatal(r, err)
	}
	closed(t, old)
	w.peers[name] = p
}

func (w *world) close(t *testing.T) {
	for _, p := range w.peers {
		p.call(t, zk.OpCloseSession, nil)
		p.nc.Close()
	}
}

// step sends a peer's requests in one go, then collects what every other peer has been told.
func (w *world) step(t *testing.T, who string, lines []string) string {
	if lines[0] == "reattach" {
		w.reattach(t, who)
		lines = lines[1:]
	}
	at := regexp.MustCompile("@[0-9]+").ReplaceAllStringFunc(strings.Join(lines, "\n"), func(s string) string {
		return fmt.Sprint(number(s[1:]) + w.base)
	})
	text := w.send(t, w.peers[who], strings.ReplaceAll(at, "ROOT", w.root))
	if slices.Contains(lines, "close") { // its ephemerals go in no particular order
		told := strings.SplitAfter(text, "\n")
		slices.Sort(told)
		text = strings.Join(told, "")
		w.peers[who].nc.Close()
		w.open(t, who)
	}
	for i := range worldPeers {
		name := fmt.Sprint("p", i)
		told := strings.SplitAfter(w.send(t, w.peers[name], "ping"), "\n")
		slices.Sort(told) // for the same reason
		text += name + ": " + strings.Join(told, "")
	}
	return strings.ReplaceAll(text, w.root, "ROOT")
}

// randomLines are one to four requests of a transcript, over few paths, so that they often meet.
func randomLines(r *rand.Rand) (lines []string) {
	path := func() string {
		p := "ROOT"
		for range 1 + r.IntN(2) {
			p += string([]byte{'/', 'a' + byte(r.IntN(3))})
		}
		return p
	}
	version := func() int { return r.IntN(4) - 1 }
	watch := func() string { return []string{"", " w"}[r.IntN(2)] }
	write := func() string {
		switch r.IntN(3) {
		case 0:
			return fmt.Sprint("create ", path(), " x ", r.IntN(4))
		case 1:
			return fmt.Sprint("set ", path(), " y ", version())
		}
		return fmt.Sprint("delete ", path(), " ", version())
	}
	if r.IntN(12) == 0 {
		lines = append(lines, "reattach", fmt.Sprint("watches", []string{"", "2"}[r.IntN(2)], " @", r.IntN(80), " data:", path(),
			" data:", path(), " exist:", path(), " exist:", path(), " child:", path(), " child:", path()))
		if strings.HasPrefix(lines[1], "watches2") {
			lines[1] += fmt.Sprint(" persistent:", path(), " recursive:", path(), " recursive:ROOT")
		}
	}
	if len(lines) == 0 && r.IntN(30) == 0 { // answered at once, so it stands alone
		return append(lines, fmt.Sprint("auth digest user", r.IntN(2), ":secret"))
	}
	acl := func() string {
		kinds := []string{"world anyone", "world anyone", "auth -", "digest " + userHash(0), "digest " + userHash(1),
			"ip 127.0.0.1", "ip 127.0.0.0/8", "ip 10.0.0.0/8", "digest bad", "sasl x"}
		var out []string
		for range 1 + r.IntN(2) {
			out = append(out, fmt.Sprint(1+r.IntN(31), " ", kinds[r.IntN(len(kinds))]))
		}
		return strings.Join(out, " ")
	}
	for range 1 + r.IntN(4) {
		switch r.IntN(26) {
		case 0, 1, 2, 3, 4, 5:
			lines = append(lines, write())
		case 6, 7:
			parts := []string{}
			for range 1 + r.IntN(4) {
				switch r.IntN(8) {
				case 0, 1:
					parts = append(parts, fmt.Sprint("check ", path(), " ", version()))
				case 2:
					parts = append(parts, fmt.Sprint("container ", path(), " 4"))
				default:
					parts = append(parts, write())
				}
			}
			lines = append(lines, "multi "+strings.Join(parts, "; "))
		case 8, 9:
			lines = append(lines, "exists "+path()+watch())
		case 10:
			lines = append(lines, "get "+path()+watch())
		case 11, 12:
			lines = append(lines, []string{"ls ", "ls2 "}[r.IntN(2)]+path()+watch())
		case 13:
			// A real server checks requests that arrive right behind a setACL against the old list.
			return append(lines, fmt.Sprint("setacl ", path(), " ", acl()))
		case 14:
			lines = append(lines, []string{"acl ", "sync "}[r.IntN(2)]+path())
		case 15:
			lines = append(lines, fmt.Sprint("container ", path(), " ", []int{4, 4, 4, 0, 2, 7, -1}[r.IntN(7)]))
		case 16:
			lines = append(lines, fmt.Sprint("createas ", path(), " ", r.IntN(4), " ", acl()))
		case 17, 18:
			lines = append(lines, fmt.Sprint("addwatch ", path(), " ", []int{0, 1, 1, 2}[r.IntN(4)]))
		case 19:
			lines = append(lines, fmt.Sprint([]string{"removewatches ", "checkwatches "}[r.IntN(2)], path(), " ", r.IntN(4)+r.IntN(2)))
		case 20:
			lines = append(lines, fmt.Sprint("multiread get ", path(), watch(), "; ls ", path(), watch(), "; get ", path()))
		case 21:
			lines = append(lines, []string{"allnumber " + path(), "ephemerals " + path(), "whoami"}[r.IntN(3)])
		case 22:
			// Without flags for it a negative time to live ends the real server.
			lines = append(lines, fmt.Sprint("ttl ", path(), []string{" 5 1000", " 6 0", " 5 -1000", " 0 1000", " 4 0"}[r.IntN(5)]))
		case 23:
			lines = append(lines, fmt.Sprint("raw ", []int{1, 2, 5, 7, 14, 19, 21, 20, 3, 4, 8, 104}[r.IntN(12)], " x"))
		default:
			lines = append(lines, fmt.Sprint("create2 ", path(), " z ", r.IntN(7)))
		}
	}
	if r.IntN(25) == 0 {
		lines = append(lines, "close")
	}
	return lines
}

// userHash is the digest of userN:secret.
func userHash(n int) string { return digestID(fmt.Appendf(nil, "user%d:secret", n)) }

// TestLikeApache runs the same random requests of several sessions on our server and on a real one, and
// compares every reply and every event.
func TestLikeApache(t *testing.T) {
	real := realzk.Addr(t)
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk", TickMs: realzk.TickMs})
	for seed := range uint64(worldSeeds) {
		worldRuns++ // the real server outlives a repeated test
		root := fmt.Sprint("/like", worldRuns)
		ours, theirs := newWorld(t, s.Addr().String(), root), newWorld(t, real, root)
		r := rand.New(rand.NewPCG(seed, 3))
		for step := range worldSteps {
			who, lines := fmt.Sprint("p", r.IntN(worldPeers)), randomLines(r)
			got, want := ours.step(t, who, lines), theirs.step(t, who, lines)
			if got != want {
				t.Fatalf("seed %d, step %d: %s sent\n%s\nours:\n%s\nApache's:\n%s",
					seed, step, who, strings.Join(lines, "\n"), got, want)
			}
		}
		ours.close(t) // or the sessions' expiry would take zxids later on
		theirs.close(t)
	}
}
