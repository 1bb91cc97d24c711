package zkserver

import (
	"encoding/binary"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// words are the four-letter words that ZooKeeper knows, and what answers them: the text as the real one
// prints it, since tools parse it.
var words = map[string]func(*Server) string{
	"conf": (*Server).confWord,
	"cons": (*Server).consWord,
	"crst": (*Server).crstWord,
	"dirs": (*Server).dirsWord,
	"dump": (*Server).dumpWord,
	"envi": (*Server).enviWord,
	"gtmk": func(s *Server) string { return fmt.Sprint(s.traceMask.Load()) },
	"hash": func(*Server) string { return "" }, // no digests are kept
	"isro": func(*Server) string { return "rw" },
	"mntr": (*Server).mntrWord,
	"ruok": func(*Server) string { return "imok" },
	"srst": (*Server).srstWord,
	"srvr": (*Server).srvrWord,
	"stat": (*Server).statWord,
	"stmk": nil, // it has an argument
	"wchc": func(s *Server) string { return s.watchText(false) + "\n" },
	"wchp": func(s *Server) string { return s.watchText(true) + "\n" },
	"wchs": (*Server).wchsWord,
}

// allowed reports whether the whitelist has a word; srvr is always in it.
func (s *Server) allowed(word string) bool {
	list := s.config.FourLetterWords
	return word == "srvr" || slices.Contains(list, word) || slices.Contains(list, "*")
}

// fourLetter answers a four-letter word that came in place of a connect request's length, and reports whether it
// was one. read takes what has come, from the word on.
func (s *Server) fourLetter(c *conn, word string, read func([]byte) error) bool {
	answer, known := words[word]
	switch {
	case !known:
		return false
	case !s.allowed(word):
		c.raw(word + " is not executed because it is not in the whitelist.\n")
	case word == "stmk":
		var b [12]byte // the word and the mask
		if read(b[:]) == nil {
			s.traceMask.Store(int64(binary.BigEndian.Uint64(b[4:])))
			c.raw(fmt.Sprint(s.traceMask.Load()))
		}
	default:
		c.raw(answer(s))
	}
	return true
}

// raw sends text without a frame, then closes.
func (c *conn) raw(text string) {
	c.omu.Lock()
	defer c.omu.Unlock()
	c.out = append(c.out, text...)
	c.stats.sent.Add(1)
	c.last = true
}

// version is what clients are told: the ZooKeeper whose behaviour this is.
const version = "3.8.0-platter"

// traceMaskDefault is ZooTrace's. The mask can be asked for and set; nothing is traced by it.
const traceMaskDefault = 306

// fullVersion names version and build time, in the real one's form.
func fullVersion() string {
	at := "1970-01-01 00:00 UTC"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, x := range info.Settings {
			if t, err := time.Parse(time.RFC3339, x.Value); x.Key == "vcs.time" && err == nil {
				at = t.UTC().Format("2006-01-02 15:04 MST")
			}
		}
	}
	return version + ", built on " + at
}

func (s *Server) srvrWord() string { return s.serverText("") }

// serverText is ServerStats.toString's; clients stand behind the version.
func (s *Server) serverText(clients string) string {
	r := s.report()
	var b strings.Builder
	fmt.Fprintf(&b, "Zookeeper version: %s\n%s", fullVersion(), clients)
	fmt.Fprintf(&b, "Latency min/avg/max: %d/%s/%d\n", r.minMs, decimal(r.meanMs), r.maxMs)
	fmt.Fprintf(&b, "Received: %d\nSent: %d\nConnections: %d\n", r.received, r.sent, r.connections)
	fmt.Fprintf(&b, "Outstanding: %d\nZxid: 0x%x\nMode: standalone\nNode count: %d\n", r.outstanding, r.zxid, r.nodes)
	return b.String()
}

func (s *Server) statWord() string {
	var b strings.Builder
	b.WriteString("Clients:\n")
	for _, c := range s.connReports() {
		b.WriteString(" " + c.text(true) + "\n")
	}
	b.WriteString("\n")
	return s.serverText(b.String())
}

func (s *Server) consWord() string {
	var b strings.Builder
	for _, c := range s.connReports() {
		b.WriteString(" " + c.text(false) + "\n")
	}
	return b.String() + "\n"
}

// text is ServerCnxn.dumpConnectionInfo's.
func (r connReport) text(brief bool) string {
	var b strings.Builder
	interest := 0
	if r.reading {
		interest = 1
	}
	fmt.Fprintf(&b, "/%s[%d](queued=%d,recved=%d,sent=%d", r.peer, interest, r.queued, r.received, r.sent)
	if t := r.talk; !brief && r.session != 0 {
		fmt.Fprintf(&b, ",sid=0x%x,lop=%s,est=%d,to=%d", uint64(r.session), opName(t.op), r.sinceMs, r.timeoutMs)
		fmt.Fprintf(&b, ",lcxid=0x%x,lzxid=0x%x,lresp=%d", t.xid, uint64(t.zxid), t.answeredMs)
		fmt.Fprintf(&b, ",llat=%d,minlat=%d,avglat=%d,maxlat=%d", t.lastMs, t.minMs, t.meanMs(), t.maxMs)
	}
	return b.String() + ")"
}

func (s *Server) crstWord() string {
	for _, c := range s.conns.list() {
		c.forgetTalk()
	}
	return "Connection stats reset.\n"
}

func (s *Server) srstWord() string {
	s.stats.reset()
	return "Server stats reset.\n"
}

func (s *Server) confWord() string {
	c := s.settings()
	var b strings.Builder
	fmt.Fprintf(&b, "clientPort=%d\nsecureClientPort=-1\n", c.port)
	fmt.Fprintf(&b, "dataDir=%s\ndataDirSize=%d\ndataLogDir=%s\ndataLogSize=%d\n", c.dir, c.dirBytes, c.logDir, c.logBytes)
	fmt.Fprintf(&b, "tickTime=%d\nmaxClientCnxns=%d\n", s.config.TickMs, s.config.MaxClientCnxns)
	fmt.Fprintf(&b, "minSessionTimeout=%d\nmaxSessionTimeout=%d\n", s.config.MinSessionMs, s.config.MaxSessionMs)
	return b.String() + "clientPortListenBacklog=-1\nserverId=0\n"
}

func (s *Server) dirsWord() string {
	c := s.settings()
	return fmt.Sprintf("datadir_size: %d\nlogdir_size: %d\n", c.dirBytes, c.logBytes)
}

func (s *Server) enviWord() string {
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, f := range environment() {
		fmt.Fprintf(&b, "%s=%v\n", f.name, f.value)
	}
	return b.String()
}

// dumpTime is how Java prints a Date.
const dumpTime = "Mon Jan 02 15:04:05 MST 2006"

func (s *Server) dumpWord() string {
	var b strings.Builder
	sessions, connections := s.leases()
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(sessions), countAll(sessions))
	for _, at := range slices.Sorted(maps.Keys(sessions)) {
		fmt.Fprintf(&b, "%d expire at %s:\n", len(sessions[at]), s.wallTime(at))
		for _, x := range sessions[at] {
			fmt.Fprintf(&b, "\t0x%x\n", uint64(x.session))
		}
	}
	ephemerals := s.ephemerals()
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(ephemerals))
	for _, id := range slices.Sorted(maps.Keys(ephemerals)) {
		fmt.Fprintf(&b, "0x%x:\n", uint64(id))
		for _, path := range ephemerals[id] {
			fmt.Fprintf(&b, "\t%s\n", path)
		}
	}
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(connections), countAll(connections))
	for _, at := range slices.Sorted(maps.Keys(connections)) {
		fmt.Fprintf(&b, "%d expire at %s:\n", len(connections[at]), s.wallTime(at))
		for _, x := range connections[at] {
			fmt.Fprintf(&b, "\tip: /%s sessionId: 0x%x\n", x.peer, uint64(x.session))
		}
	}
	return b.String()
}

func (s *Server) wchsWord() string {
	n := s.watches.Counts()
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", n.Watchers, n.Paths, n.Data)
}

// watchText lists watches by path or by session.
func (s *Server) watchText(byPath bool) string {
	bySession, paths := s.watchLists()
	var b strings.Builder
	if byPath {
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			fmt.Fprintln(&b, path)
			for _, id := range paths[path] {
				fmt.Fprintf(&b, "\t0x%x\n", uint64(id))
			}
		}
		return b.String()
	}
	for _, id := range slices.Sorted(maps.Keys(bySession)) {
		fmt.Fprintf(&b, "0x%x\n", uint64(id))
		for _, path := range bySession[id] {
			fmt.Fprintf(&b, "\t%s\n", path)
		}
	}
	return b.String()
}

func (s *Server) mntrWord() string {
	var b strings.Builder
	for _, m := range s.metrics() {
		fmt.Fprintf(&b, "zk_%s\t%s\n", m.name, metricText(m.value))
	}
	return b.String()
}

func metricText(v any) string {
	if f, ok := v.(float64); ok {
		return decimal(f)
	}
	return fmt.Sprint(v)
}

// decimal prints a mean as Java does: rounded to four digits, with at least one.
func decimal(f float64) string {
	text := strings.TrimRight(fmt.Sprintf("%.4f", f), "0")
	if strings.HasSuffix(text, ".") {
		text += "0"
	}
	return text
}
